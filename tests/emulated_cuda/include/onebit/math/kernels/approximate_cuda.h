// Replaces kernels/approximate_cuda.h on the emulated device: its folder is searched first.
// Results have relative errors of 2^-22, as the PTX manual allows, so that no test can rely on
// exact results.
#pragma once

#include <cmath>

namespace onebit::kernels::cuda {

inline float with_error(float exact) {
  const float inexact = exact * (1.0f + 0x1p-22f);
  return std::abs(inexact) < 0x1p-126f ? 0.0f : inexact;
}

inline float approximate_exp2(float x) {
  return with_error(std::exp2(x));
}

inline float approximate_reciprocal(float x) {
  return with_error(1.0f / x);
}

}  // namespace onebit::kernels::cuda
