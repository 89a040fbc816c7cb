// How large a BERT may be. Sizes come from files of others and from recipes: a size without a limit
// would make the number of parameters overflow, or a table of them fill the memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

// The sizes of config.json and of a recipe's section `model`, by the keys of config_keys.h.
struct ModelSizes {
  int64_t vocab_size = 0, hidden_size = 0, layers = 0, heads = 0;
  int64_t intermediate_size = 0, positions = 0, segments = 0;
};

// The limit of one size, by its key.
int64_t largest_size(std::string_view key);

struct SizeFlaw {
  std::string key;     // of config_keys.h
  std::string reason;  // "is 1000000, but must be at least 1 and at most 10000"
};

// The first size beyond its limit, else the largest one if all of them together make too many
// parameters. Empty: the model is possible.
std::optional<SizeFlaw> find_size_flaw(const ModelSizes& sizes);

}  // namespace onebit
