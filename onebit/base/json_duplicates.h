// Finds a key given twice in one object, which JSON parsers let pass.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

struct DuplicateKey {
  std::string key;
  size_t offset;  // of the second one's opening quote, in bytes
};

// `text` must already have been parsed as JSON, comments allowed.
std::optional<DuplicateKey> find_duplicate_key(std::string_view text);

}  // namespace onebit
