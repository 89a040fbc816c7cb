// A Dropout prepared for a loop.
#pragma once

#include <cstdint>

#include "onebit/ground/base/philox.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/kernels/dropout_mask.h"

namespace onebit::kernels {

struct DropoutPlan {
  explicit DropoutPlan(const Dropout& dropout)
      : threshold(dropout_threshold(dropout.probability)),
        comparison(dropout_comparison(threshold)),
        scale(dropout_scale(threshold)),
        round_keys(dropout_keys(dropout.seed)),
        site(dropout.site),
        row_keys(threshold > 0 ? dropout.row_keys.data<uint64_t>() : nullptr) {}

  bool active() const { return threshold > 0; }

  uint32_t threshold;
  DropoutComparison comparison;
  float scale;
  DropoutKeys round_keys;
  uint32_t site;
  const uint64_t* row_keys;
};

// The number of 16-bit words that take a bit for each of `columns` columns: what the widest vectors
// write, and what they read behind it.
inline int64_t dropout_bits_elements(int64_t columns) {
  constexpr int64_t kWidest = 16, kRead = 4;
  return (columns + kWidest * kDropoutLanes - 1) / (kWidest * kDropoutLanes) * kWidest + kRead;
}

}  // namespace onebit::kernels
