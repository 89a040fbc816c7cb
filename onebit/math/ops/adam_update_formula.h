// Adam's arithmetic for one element, written once for CUDA devices and for the host, where tests
// compare it bit for bit with the vector loops. Fused multiply-adds are explicit.
#pragma once

#include <cmath>

#include "onebit/ground/base/philox.h"
#include "onebit/math/ops/adam_update.h"

namespace onebit::ops {

// The factors of an adam_update that are the same for all elements, in f32 but for the rate, which
// its range multiplies first.
struct AdamFactors {
  explicit AdamFactors(const AdamUpdate& a)
      : scale(static_cast<float>(a.gradient_scale)),
        beta1(static_cast<float>(a.beta1)),
        rest1(static_cast<float>(1 - a.beta1)),
        beta2(static_cast<float>(a.beta2)),
        rest2(static_cast<float>(1 - a.beta2)),
        factor1(static_cast<float>(a.momentum_factor)),
        factor2(static_cast<float>(a.variance_factor)),
        epsilon(static_cast<float>(a.epsilon)),
        learning_rate(a.learning_rate),
        decoupled(a.decoupled) {}

  // What a range with this rate moves its values by.
  ONEBIT_HOST_DEVICE float rate_of(double range_rate) const {
    return static_cast<float>(learning_rate * range_rate);
  }

  float scale, beta1, rest1, beta2, rest2, factor1, factor2, epsilon;
  double learning_rate;
  bool decoupled;
};

struct AdamElement {
  float value, momentum, variance;
};

ONEBIT_HOST_DEVICE inline AdamElement adam_element(AdamElement old, float gradient, float decay,
                                                   float rate, const AdamFactors& f) {
  const float gradient_decay = f.decoupled ? 0.0f : decay, value_decay = f.decoupled ? decay : 0.0f;
  const float g = fmaf(gradient_decay, old.value, f.scale * gradient);
  const float mean = fmaf(f.beta1, old.momentum, f.rest1 * g);
  const float momentum = fabsf(mean) < kSmallestMomentum ? 0.0f : mean;
  const float variance = fmaf(f.beta2, old.variance, f.rest2 * (g * g));
  const float denominator = sqrtf(f.factor2 * variance) + f.epsilon;
  const float update = denominator > 0.0f ? (f.factor1 * momentum) / denominator : 0.0f;
  const float value = fmaf(-rate, fmaf(value_decay, old.value, update), old.value);
  return {value, momentum, variance};
}

}  // namespace onebit::ops
