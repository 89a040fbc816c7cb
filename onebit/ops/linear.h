// Dense layers. Activations and weights share one type (f32, bf16, f16); sums are f32. On CUDA
// devices the bias is rounded to that type before it is added.
#pragma once

#include "onebit/device/context.h"
#include "onebit/tensor/view.h"

namespace onebit::ops {

// y = x . weight^T + bias
struct Linear {
  ConstView x;       // [rows, in]
  ConstView weight;  // [out, in]
  ConstView bias;    // f32 [out], or empty
  View y;            // [rows, out]  overwritten
};
void linear(Context&, const Linear&);

// grad_x = grad_y . weight
struct LinearBackwardInput {
  ConstView grad_y;  // [rows, out]
  ConstView weight;  // [out, in]
  View grad_x;       // [rows, in]  overwritten, or added to if `add`
  bool add = false;
};
void linear_backward_input(Context&, const LinearBackwardInput&);

// grad_weight += grad_y^T . x;  grad_bias += column sums of grad_y
struct LinearBackwardWeight {
  ConstView grad_y;  // [rows, out]
  ConstView x;       // [rows, in]
  View grad_weight;  // f32 [out, in]  added to
  View grad_bias;    // f32 [out]      added to; empty when not wanted (or summed elsewhere)
};
void linear_backward_weight(Context&, const LinearBackwardWeight&);

// Whether the device multiplies bf16 itself. Where it does not (a CPU without AVX-512 BF16 or AMX),
// linear widens bf16 operands into f32 scratch, multiplies in f32 and rounds the output: right, and
// no faster than f32. f16 is always widened on a CPU.
bool bf16_is_native(Context&);

}  // namespace onebit::ops
