// Functions that a GPU computes in one instruction, to about 22 bits. Denormal numbers become zero
// (sections "ex2" and "rcp" of the PTX manual). For *_cuda.cu only. The emulated device has its own
// version (tests/emulated_cuda).
#pragma once

namespace onebit::kernels::cuda {

// 2^x, and 0 for -infinity.
__device__ inline float approximate_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// 1 / x.
__device__ inline float approximate_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace onebit::kernels::cuda
