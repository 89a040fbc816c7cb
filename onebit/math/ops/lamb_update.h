// LAMB (You et al., arXiv 1904.00962, algorithm 2) with DeepSpeed's bounds: Adam's update of a
// tensor, rescaled to the norm of the tensor's values within limits. Two passes over a flat range,
// the first of which computes the norms.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/lamb_tensor.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

using kernels::LambTensor;

// With g = gradient_scale * gradient:
//   momentum = beta1 momentum + (1 - beta1) g, 0 below kSmallestMomentum (adam_update.h)
//   variance = beta2 variance + (1 - beta2) g^2
//   u = momentum_factor momentum / (sqrt(variance_factor variance) + epsilon) + weight_decay value,
//       the quotient 0 if its denominator is 0
//   ratio = |value| / |u| of the tensor, within [min_ratio, max_ratio], or 1 if a norm is 0
//   value -= learning_rate rate ratio u
// Weight decay and rate are the tensor's. The factors are 1 / (1 - beta^t), or 1 without bias
// correction. Norms are summed in f64, in an
// order that depends only on the tensors.
struct LambUpdate {
  View value;          // f32 [elements]  updated
  View compute_value;  // bf16 or f16 [elements]  overwritten with the new value; empty: none
  ConstView gradient;  // f32 [elements]
  View momentum;       // f32 [elements]  updated
  View variance;       // f32 [elements]  updated
  View ratio;          // f32 [tensors]   overwritten
  std::span<const LambTensor> tensors;  // consecutive from 0 to elements, none empty
  double learning_rate = 0;
  double gradient_scale = 1;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool epsilon_inside_root = false;  // sqrt(variance_factor variance + epsilon) instead
  double momentum_factor = 1, variance_factor = 1;
  double min_ratio = 0.01, max_ratio = 10;
};
void lamb_update(Context&, const LambUpdate&);

}  // namespace onebit::ops
