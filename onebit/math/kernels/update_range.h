// A range of a flat buffer that an optimizer treats uniformly.
#pragma once

#include <cstdint>

namespace onebit::kernels {

// Elements [begin, end), multiples of 16, with one weight decay.
struct UpdateRange {
  int64_t begin = 0, end = 0;
  double weight_decay = 0;
};

}  // namespace onebit::kernels
