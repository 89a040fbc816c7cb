// Layer normalisation over the last axis (Ba et al., arXiv 1607.06450): biased variance, epsilon
// inside the square root. The norm by the root of the mean square (Zhang and Sennrich, arXiv
// 1910.07467) is kRms: the mean counts as 0 and is neither read nor written. Activations are f32,
// bf16 or f16, parameters, statistics and sums f32. Beta may be empty everywhere, together with its
// gradient.
#pragma once

#include "onebit/ground/base/encoder_choices.h"
#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// y = (x - mean) * inverse_stddev * gamma + beta
struct LayerNorm {
  NormKind kind = NormKind::kLayer;
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
  NormKind kind = NormKind::kLayer;
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

// The end of a sublayer in one pass over memory: dropout, residual and norm.
// Activations are f32, bf16 or f16, parameters, statistics and sums f32.

// sum = residual + factor * dropout(x),  y = layer_norm(sum)
struct ResidualNorm {
  NormKind kind = NormKind::kLayer;
  ConstView residual;  // [rows, hidden]
  ConstView x;         // [rows, hidden]  (includes the bias)
  kernels::Dropout dropout;
  float factor = 1;       // multiplies what is added to the residual (model/layer_drop.h)
  ConstView gamma, beta;  // f32 [hidden]
  float epsilon = 1e-12f;
  View sum;  // [rows, hidden]  overwritten (empty if it is not read later, as in invertible
             //                 post-LN and evaluation), may be residual or x
  View y;    // [rows, hidden]  overwritten, may be residual or x, not sum
  View mean, inverse_stddev;  // f32 [rows]      overwritten (both empty in evaluation)
};
void residual_norm(Context&, const ResidualNorm&);

// With g = grad_y + grad_y_extra:
//   grad_sum = layer_norm'(g) + grad_sum_extra,  grad_residual = grad_sum,  grad_x =
//   factor * dropout'(grad_sum)
// Reads the norm's input `sum`, or, when that is empty, recovers it from y as the norm
// without a residual does.
struct ResidualNormBackward {
  NormKind kind = NormKind::kLayer;
  ConstView grad_y;        // [rows, hidden]
  ConstView grad_y_extra;  // [rows, hidden], or empty: a second gradient of y
  ConstView
      grad_sum_extra;     // [rows, hidden], or empty: a gradient that reached `sum` past the norm
  ConstView sum;          // [rows, hidden], or empty
  ConstView y;            // [rows, hidden], read only when sum is empty
  ConstView gamma, beta;  // f32 [hidden], beta read only when sum is empty
  ConstView mean;         // f32 [rows], read only when sum is given
  ConstView inverse_stddev;  // f32 [rows]
  kernels::Dropout dropout;  // as in the forward pass
  float factor = 1;          // likewise
  View grad_residual;        // [rows, hidden]  overwritten, may be one of the grad inputs
  View grad_x;               // [rows, hidden]  overwritten, may be another of the grad inputs, or,
                             //                 without dropout and factor, empty (= grad_residual)
  View grad_gamma, grad_beta;  // f32 [hidden]    added to
  View grad_bias;  // f32 [hidden]    column sums of grad_x, added to (empty: not computed)
};
void residual_norm_backward(Context&, const ResidualNormBackward&);

}  // namespace onebit::ops
