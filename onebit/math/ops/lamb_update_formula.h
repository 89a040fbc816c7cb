// LAMB's arithmetic for one element and for one tensor's norms, written once for CUDA devices and
// for the host, where tests compare it with the vector loops. Fused multiply-adds are explicit.
#pragma once

#include <cmath>

#include "onebit/ground/base/philox.h"
#include "onebit/math/ops/adam_update.h"
#include "onebit/math/ops/lamb_update.h"

namespace onebit::ops {

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

}  // namespace onebit::ops
