// Adam (Kingma and Ba, arXiv 1412.6980) and AdamW (Loshchilov and Hutter, arXiv 1711.05101): one
// pass over a flat range that reads gradients, moments and values and writes moments, values and
// the compute copy.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "onebit/ground/base/philox.h"
#include "onebit/math/device/context.h"
#include "onebit/math/kernels/blocks.h"
#include "onebit/math/tensor/view.h"

namespace onebit::updates {

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

// Adam's arithmetic for one element, written once for CUDA devices and for the host, where tests
// compare it bit for bit with the vector loops. Fused multiply-adds are explicit.

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

}  // namespace onebit::updates
