// CUDA's type and functions of f16.
#pragma once

#include <cuda_runtime.h>

struct __half {
  uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

inline float __half2float(__half value) {
  _Float16 number = 0;
  std::memcpy(&number, &value.bits, sizeof number);
  return static_cast<float>(number);
}
// Rounds to nearest even.
inline __half __float2half_rn(float value) {
  const _Float16 number = static_cast<_Float16>(value);
  __half result{};
  std::memcpy(&result.bits, &number, sizeof number);
  return result;
}
inline __half2 __floats2half2_rn(float low, float high) {
  return {__float2half_rn(low), __float2half_rn(high)};
}
