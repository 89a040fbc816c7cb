// The dropout of one place in the model: a member of the arguments of every operation that includes
// dropout. The mask is a pure function of (seed, site, row key, column): the same on every device,
// at any rank or thread count and after any resume. dropout_mask.h has the exact rule.
#pragma once

#include <cstdint>

#include "onebit/math/tensor/view.h"

namespace onebit::kernels {

struct Dropout {
  float probability = 0;  // in [0, 1), where 0 is no dropout. Rounded to multiples of 1/65536.
  uint64_t seed = 0;      // of the run
  uint32_t site = 0;      // number of the place in the model, unique among the dropouts of a step
  ConstView row_keys;     // u64 [rows], distinct between steps, unused if the probability is 0
};

}  // namespace onebit::kernels
