#pragma once

#include <memory>
#include <vector>

#include "onebit/data/formats/name_map.h"
#include "tests/fuzz/fuzz_input.h"

namespace onebit::formats {

// Reads every tensor like a conversion, under the file's names, under onebit's, and under those of
// each family.
inline void read_tensors(const std::shared_ptr<const TensorSource>& source) {
  std::vector<std::byte> scratch;
  for (size_t i = 0; i < source->entries().size(); ++i) {
    expect_error_at_most([&] { source->bytes(i, scratch); });
  }
  for (const Family& family : families()) {
    expect_error_at_most([&] {
      const ModelNames names{.family = &family, .head = HeadClass::kSpan, .attention_heads = 2};
      const auto ours = under_our_names(source, nullptr, names);
      for (size_t i = 0; i < ours->entries().size(); ++i) {
        expect_error_at_most([&] { ours->bytes(i, scratch); });
      }
      const auto back = under_own_names(ours, names);
      for (size_t i = 0; i < back->entries().size(); ++i) {
        expect_error_at_most([&] { back->bytes(i, scratch); });
      }
    });
  }
}

}  // namespace onebit::formats
