// Shared memory of a thread block. For *_cuda.cu only; the emulated device has its own
// (tests/emulated_cuda).
#pragma once

namespace onebit::kernels::cuda {

// The object of type T that the threads of a block share, uninitialised. There is one for each type
// in a kernel, so every use has a type of its own; the sizes of a kernel's add up to at most 48
// KiB.
template <typename T>
__device__ T& block_shared() {
  __shared__ T memory;
  return memory;
}

}  // namespace onebit::kernels::cuda
