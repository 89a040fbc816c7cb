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

// The object of the type that launch_with_shared names, uninitialised; at most 99 KiB.
template <typename T>
__device__ T& launch_shared() {
  extern __shared__ uint4 memory_of_launch[];
  return *reinterpret_cast<T*>(memory_of_launch);
}

}  // namespace onebit::kernels::cuda
