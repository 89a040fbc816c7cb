// Layer normalisation over the last axis (Ba et al., arXiv 1607.06450): biased variance, epsilon
// inside the square root. Activations are f32, bf16 or f16, parameters, statistics and sums f32.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// y = (x - mean) * inverse_stddev * gamma + beta
struct LayerNorm {
  ConstView x;            // [rows, hidden]
  ConstView gamma, beta;  // f32 [hidden]
  float epsilon = 1e-12f;
  View y;                     // [rows, hidden]  overwritten, may be x
  View mean, inverse_stddev;  // f32 [rows]      overwritten (both empty in evaluation)
};
void layer_norm(Context&, const LayerNorm&);

// Reads the input x, or, when x is empty ("invertible"), recovers the normalised value from the
// output as (y - beta) / gamma, or 0 if gamma is 0 (that column's gamma then gets no gradient).
struct LayerNormBackward {
  ConstView grad_y;            // [rows, hidden]
  ConstView x;                 // [rows, hidden], or empty
  ConstView y;                 // [rows, hidden], read only when x is empty
  ConstView gamma, beta;       // f32 [hidden], beta read only when x is empty
  ConstView mean;              // f32 [rows], read only when x is given
  ConstView inverse_stddev;    // f32 [rows]
  View grad_x;                 // [rows, hidden]  overwritten, may be grad_y
  View grad_gamma, grad_beta;  // f32 [hidden]  added to
};
void layer_norm_backward(Context&, const LayerNormBackward&);

}  // namespace onebit::ops
