// The scales of a block's sub-blocks, written once for CPUs and CUDA devices, which must agree bit
// for bit: base * 2^(-code / 2) for codes 0..14, 0 for code 15. The base is the largest mean
// absolute value of the block, as bf16, or 0 below kMinLevel. The code of a sub-block is the
// number of limits that its mean absolute value is below, which is the nearest in ratio. If the
// base is 0 all codes are 15.
#pragma once

#include <cstdint>
#include <cstring>

#include "onebit/ground/base/philox.h"

namespace onebit::compress {

// pi / 2. The mean absolute value is the least-squares scale of signs, but it transmits only 2 / pi
// of a small signal in Gaussian noise at once. Error feedback transmits the rest later. A gradient
// that is late by a step or two makes Adam unstable, since it trains at the edge of stability: with
// beta1 = 0.9 the largest stable curvature falls from 38 to 1 over the learning rate. With this
// scale a small signal is transmitted nearly completely at once, and mostly noise is left for the
// feedback (docs/compression.md).
inline constexpr float kSignGain = 1.57079633f;

// An owner sends its momentum plus this share of the momentum's last change. The residual is not
// Gaussian, so that with kSignGain the signs of a worker transmit 0.945 and an owner's 0.92 of a
// small signal at once (by simulation), the rest in the next steps: g / (1 - (1 - g) / z) each. The
// inverse of both is, to first order, 1 + lead (1 - 1 / z) with lead = 0.055 / 0.945 + 0.08 / 0.92.
// Without the lead the largest stable curvature is 8 over the learning rate where Adam's is 38,
// with it 38 (docs/compression.md).
inline constexpr float kMomentumLead = 0.145f;

// The residual of a block below this level is set to 0, and so is an owner's momentum below it.
// Without gradients, as in rows of words that do not occur, both would shrink to the smallest
// denormal numbers and stay there, which slows processors tenfold, even if only their squares are
// denormal. Coded values are of size 1, so this is far below what f32 resolves next to them.
inline constexpr float kMinLevel = 0x1p-63f;  // its square is the least normal number

inline constexpr int kScaleCodes = 15;
inline constexpr uint32_t kNothingSent = 15;               // the code of scale 0
inline constexpr uint32_t kNothingSentAtAll = 0xFFFFFFFF;  // all codes of a header

// 2^(-exponent), exactly.
ONEBIT_HOST_DEVICE inline float inverse_power(uint32_t exponent) {
  const uint32_t word = (127 - exponent) << 23;
  float power;
  std::memcpy(&power, &word, sizeof power);
  return power;
}

// The upper end of the range of code k + 1, relative to the base: 2^(-(k + 0.5) / 2).
ONEBIT_HOST_DEVICE inline float code_limit(uint32_t k) {
  return (k % 2 == 0 ? 0.840896415f : 0.594603558f) * inverse_power(k / 2);
}

// The transmitted scale, relative to the base.
ONEBIT_HOST_DEVICE inline float scale_factor(uint32_t code) {
  const float factor = (code % 2 == 0 ? 1.0f : 0.707106781f) * inverse_power(code / 2);
  return code == kNothingSent ? 0.0f : factor;
}

ONEBIT_HOST_DEVICE inline float base_value(uint16_t base) {
  const uint32_t word = uint32_t{base} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// bf16 of a non-negative level, rounded to nearest even. A level that would round to infinity
// becomes the largest finite number, and one below kMinLevel becomes 0.
ONEBIT_HOST_DEVICE inline uint16_t base_of(float level) {
  constexpr uint32_t kLargest = 0x7F7F;
  if (level < kMinLevel) return 0;
  uint32_t word;
  std::memcpy(&word, &level, sizeof word);
  const uint32_t rounded = (word + 0x7FFFu + (word >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>(rounded < kLargest ? rounded : kLargest);
}

}  // namespace onebit::compress
