// Dropout whose mask is a pure function of (seed, site, row key, column): the same on every device,
// for any number of ranks and threads and after any resume. Masks are not stored. The backward pass
// draws them again. The exact rule is in dropout_mask.h.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// y = x with dropped elements zero and kept ones scaled by 65536 / (65536 - threshold).
struct DropoutForward {
  ConstView x;  // [rows, columns]
  kernels::Dropout dropout;
  View y;  // [rows, columns]  overwritten, may be x
};
void dropout(Context&, const DropoutForward&);

struct DropoutBackward {
  ConstView grad_y;          // [rows, columns]
  kernels::Dropout dropout;  // as in the forward pass
  View grad_x;               // [rows, columns]  overwritten, may be grad_y
};
void dropout_backward(Context&, const DropoutBackward&);

}  // namespace onebit::ops
