// CUDA's type and functions of bf16.
#pragma once

#include <cuda_runtime.h>

struct __nv_bfloat16 {
  uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline float __bfloat162float(__nv_bfloat16 value) {
  const uint32_t word = uint32_t{value.bits} << 16;
  float result = 0;
  std::memcpy(&result, &word, sizeof result);
  return result;
}
// Rounds to nearest even. Every NaN becomes the canonical one, as on the device.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  if ((word & 0x7FFFFFFFu) > 0x7F800000u) return {0x7FFF};
  return {static_cast<uint16_t>((word + 0x7FFFu + (word >> 16 & 1u)) >> 16)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  return {__float2bfloat16_rn(low), __float2bfloat16_rn(high)};
}
inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 value) {
  return value.bits;
}
inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits) {
  return {bits};
}
