// LAMB (You et al., arXiv 1904.00962, algorithm 2) with DeepSpeed's bounds: Adam's update of a
// tensor, rescaled to the norm of the tensor's values within limits. Two passes over a flat range,
// the first of which computes the norms.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "onebit/ground/base/philox.h"
#include "onebit/math/device/context.h"
#include "onebit/math/kernels/blocks.h"
#include "onebit/math/tensor/view.h"
#include "onebit/math/updates/adam_update.h"

namespace onebit::updates {

using kernels::LambTensor;

// With g = gradient_scale * gradient:
//   momentum = beta1 momentum + (1 - beta1) g, 0 below kSmallestMomentum (adam_update.h)
//   variance = beta2 variance + (1 - beta2) g^2
//   u = momentum_factor momentum / (sqrt(variance_factor variance) + epsilon) + weight_decay value,
//       the quotient 0 if its denominator is 0
//   ratio = |value| / |u| of the tensor, within [min_ratio, max_ratio], or 1 if a norm is 0
//   value -= learning_rate rate ratio u
// Weight decay and rate are the tensor's. The factors are 1 / (1 - beta^t), or 1 without bias
// correction. Norms are summed in f64, in an order that depends only on the tensors.
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

// LAMB's arithmetic for one element and for one tensor's norms, written once for CUDA devices and
// for the host, where tests compare it with the vector loops. Fused multiply-adds are explicit.

// The factors of a lamb_update that are the same for all elements, in f32.
struct LambFactors {
  explicit LambFactors(const LambUpdate& a)
      : scale(static_cast<float>(a.gradient_scale)),
        beta1(static_cast<float>(a.beta1)),
        rest1(static_cast<float>(1 - a.beta1)),
        beta2(static_cast<float>(a.beta2)),
        rest2(static_cast<float>(1 - a.beta2)),
        factor1(static_cast<float>(a.momentum_factor)),
        factor2(static_cast<float>(a.variance_factor)),
        epsilon_inside(static_cast<float>(a.epsilon_inside_root ? a.epsilon : 0)),
        epsilon_outside(static_cast<float>(a.epsilon_inside_root ? 0 : a.epsilon)) {}

  float scale, beta1, rest1, beta2, rest2, factor1, factor2, epsilon_inside, epsilon_outside;
};

struct LambMoments {
  float momentum, variance;
};

ONEBIT_HOST_DEVICE inline LambMoments lamb_moments(LambMoments old, float gradient,
                                                   const LambFactors& f) {
  const float g = f.scale * gradient;
  const float mean = fmaf(f.beta1, old.momentum, f.rest1 * g);
  return {.momentum = fabsf(mean) < kSmallestMomentum ? 0.0f : mean,
          .variance = fmaf(f.beta2, old.variance, f.rest2 * (g * g))};
}

// u: the update before it is rescaled.
ONEBIT_HOST_DEVICE inline float lamb_direction(float value, LambMoments moments, float decay,
                                               const LambFactors& f) {
  const float root = sqrtf(fmaf(f.factor2, moments.variance, f.epsilon_inside));
  const float denominator = root + f.epsilon_outside;
  const float quotient = denominator > 0.0f ? (f.factor1 * moments.momentum) / denominator : 0.0f;
  return fmaf(decay, value, quotient);
}

// The ratio from the squared norms of a tensor's values and of its u.
ONEBIT_HOST_DEVICE inline float lamb_ratio(double value_square, double direction_square,
                                           double min_ratio, double max_ratio) {
  if (!(value_square > 0 && direction_square > 0)) return 1;
  const double ratio = sqrt(value_square) / sqrt(direction_square);
  return static_cast<float>(fmin(fmax(ratio, min_ratio), max_ratio));
}

}  // namespace onebit::updates
