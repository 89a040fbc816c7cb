// A range of a flat buffer that an optimizer treats uniformly.
#pragma once

#include <cstdint>

namespace onebit::kernels {

// Elements [begin, end), multiples of 16, with one weight decay and one learning rate.
struct UpdateRange {
  int64_t begin = 0, end = 0;
  double weight_decay = 0;
  double rate = 1;  // the update's learning rate is multiplied by it
};

}  // namespace onebit::kernels
