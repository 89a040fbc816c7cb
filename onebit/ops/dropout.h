// Dropout whose mask is a pure function of (seed, site, row key, column): the same on every device,
// at any rank or thread count and after any resume. Masks are drawn again in the backward pass and
// stored nowhere. Exact rule in dropout_mask.h.
#pragma once

#include <cstdint>

#include "onebit/device/context.h"
#include "onebit/tensor/view.h"

namespace onebit::ops {

// What one place in the model drops. Other operations take it as a member and apply it themselves.
struct Dropout {
  float probability = 0;  // in [0, 1); 0 turns dropout off. Rounded to multiples of 1/65536.
  uint64_t seed = 0;      // of the run
  uint32_t site = 0;      // numbers the places of one model: no two dropouts of a step share it
  ConstView row_keys;     // u64 [rows], distinct between steps; unused when the probability is 0
};

// y = x with dropped elements zero and kept ones scaled by 65536 / (65536 - threshold).
struct DropoutForward {
  ConstView x;  // [rows, columns]
  Dropout dropout;
  View y;  // [rows, columns]  overwritten; may be x
};
void dropout(Context&, const DropoutForward&);

struct DropoutBackward {
  ConstView grad_y;  // [rows, columns]
  Dropout dropout;   // as in the forward pass
  View grad_x;       // [rows, columns]  overwritten; may be grad_y
};
void dropout_backward(Context&, const DropoutBackward&);

}  // namespace onebit::ops
