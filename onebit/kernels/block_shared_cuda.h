// Shared memory of a thread block. For *_cuda.cu only; the emulated device has its own version
// (tests/emulated_cuda).
#pragma once

namespace onebit::kernels::cuda {

// The object of type T that the threads of a block share, uninitialised. A kernel has one object
// per type, so every use has its own type; those of a kernel may have at most 48 KiB in total.
template <typename T>
__device__ T& block_shared() {
  __shared__ T memory;
  return memory;
}

}  // namespace onebit::kernels::cuda
