// A Dropout prepared for a loop.
#pragma once

#include <cstdint>

#include "onebit/base/philox.h"
#include "onebit/kernels/dropout.h"
#include "onebit/kernels/dropout_mask.h"

namespace onebit::kernels {

struct DropoutPlan {
  explicit DropoutPlan(const Dropout& dropout)
      : threshold(dropout_threshold(dropout.probability)),
        scale(dropout_scale(threshold)),
        round_keys(dropout_keys(dropout.seed)),
        site(dropout.site),
        row_keys(threshold > 0 ? dropout.row_keys.data<uint64_t>() : nullptr) {}

  bool active() const { return threshold > 0; }

  uint32_t threshold;
  float scale;
  DropoutKeys round_keys;
  uint32_t site;
  const uint64_t* row_keys;
};

// The number of 16-bit lanes for `columns` columns, rounded up to what the widest vectors write.
inline int64_t dropout_bits_elements(int64_t columns) {
  constexpr int64_t kWidest = 8 * 16;
  return (columns + kWidest - 1) / kWidest * kWidest;
}

}  // namespace onebit::kernels
