// Shared memory of a thread block. For *_cuda.cu only. The emulated device has
// its own version (tests/emulated_cuda).
#pragma once

#include <cstddef>

namespace onebit::kernels::cuda {

// What a kernel has without asking for more at its launch.
inline constexpr size_t kStaticSharedBytes = size_t{48} << 10;

// The shared memory of a multiprocessor of the device that is compiled for.
// Code for compute capability 8.0 also runs on 8.6 and 8.9.
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
inline constexpr int kMultiprocessorKilobytes = 100;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr int kMultiprocessorKilobytes = 164;
#else
inline constexpr int kMultiprocessorKilobytes = 228;
#endif

// The object of type T that the threads of a block share, uninitialised. A
// kernel has one object per type, so every use has its own type. All objects of
// a kernel may have at most 48 KiB in total. A larger object is the kernel's
// only one, and the kernel is launched with launch_sharing<T>().
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
