// Shared memory of a thread block. For *_cuda.cu only; the emulated device has its own version
// (tests/emulated_cuda).
#pragma once

#include <cstddef>

namespace onebit::kernels::cuda {

// What a kernel has without asking for more at its launch.
inline constexpr size_t kStaticSharedBytes = size_t{48} << 10;

// The object of type T that the threads of a block share, uninitialised. A kernel has one object
// per type, so every use has its own type; those of a kernel may have at most 48 KiB in total. An
// object of more is the kernel's only one, and the kernel is launched with launch_sharing<T>().
template <typename T>
__device__ T& block_shared() {
  if constexpr (sizeof(T) > kStaticSharedBytes) {
    extern __shared__ __align__(1024) unsigned char large_memory[];
    return *reinterpret_cast<T*>(large_memory);
  } else {
    __shared__ T memory;
    return memory;
  }
}

}  // namespace onebit::kernels::cuda
