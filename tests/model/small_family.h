// A small model of each family of encoders. Its heads have 64 columns, as the tensor-core kernels
// want them. Layers 1 and 2 of four have windows, where the family has any.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "onebit/data/formats/families.h"
#include "onebit/math/model/config.h"

namespace onebit::model {

inline std::vector<std::string> all_families() {
  std::vector<std::string> names;
  for (const formats::Family& family : formats::families()) names.emplace_back(family.model_type);
  return names;
}

inline EncoderConfig small_family(const std::string& name) {
  const formats::Family& family = formats::find_family(name, name);
  EncoderConfig config{.family = name,
                       .vocab_size = 320,
                       .hidden_size = 128,
                       .layers = 4,
                       .heads = 2,
                       .intermediate_size = 192,
                       .max_positions = 128,
                       .segments = family.segments,
                       .layer_norm_eps = family.epsilon,
                       .choices = family.choices};
  if (!family.keys.embedding_size.empty()) config.choices.embedding_size = 64;
  if (config.choices.window > 0) config.choices.window = 16;
  return config;
}

// GoogleTest accepts no hyphen in a name.
inline std::string family_test_name(std::string family) {
  std::replace(family.begin(), family.end(), '-', '_');
  return family;
}

}  // namespace onebit::model
