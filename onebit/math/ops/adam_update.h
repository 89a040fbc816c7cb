// Adam (Kingma and Ba, arXiv 1412.6980) and AdamW (Loshchilov and Hutter, arXiv 1711.05101): one
// pass over a flat range that reads gradients, moments and values and writes moments, values and
// the compute copy.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/update_range.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

using kernels::UpdateRange;

// Without gradients the momentum would decay to a few of the smallest denormals and, by rounding,
// stay there: processors compute with those many times slower, for the rest of the run.
inline constexpr float kSmallestMomentum = std::numeric_limits<float>::min();

// With g = gradient_scale * gradient (+ weight_decay * value unless `decoupled`):
//   momentum = beta1 momentum + (1 - beta1) g, 0 below kSmallestMomentum
//   variance = beta2 variance + (1 - beta2) g^2
//   u = momentum_factor momentum / (sqrt(variance_factor variance) + epsilon),
//       0 if that denominator is 0
//   value -= learning_rate rate (u + weight_decay value, the latter only if `decoupled`)
// with the range's decay and rate. Factors are 1 / (1 - beta^t), or 1 without bias correction.
struct AdamUpdate {
  View value;          // f32 [elements]  updated
  View compute_value;  // bf16 or f16 [elements]  overwritten with the new value; empty: none
  ConstView gradient;  // f32 [elements]
  View momentum;       // f32 [elements]  updated
  View variance;       // f32 [elements]  updated
  std::span<const UpdateRange> ranges;  // consecutive from 0 to elements
  double learning_rate = 0;
  double gradient_scale = 1;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum_factor = 1, variance_factor = 1;
  bool decoupled = true;
};
void adam_update(Context&, const AdamUpdate&);

// Aborts unless the ranges are consecutive, of multiples of 16, and cover [0, elements).
void check_ranges(std::span<const UpdateRange> ranges, int64_t elements);

}  // namespace onebit::ops
