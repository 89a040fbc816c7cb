// What most CUDA kernels are made of: eight elements at a time, sums over a block, typed pointers,
// the sizes of launches. For *_cuda.cu only.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "onebit/math/device/cuda_check.h"
#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/eight_cuda.h"
#include "onebit/math/tensor/view.h"

namespace onebit::kernels::cuda {

// The only place where kernels are launched. For *_cuda.cu only.

// Queues `kernel`, which calls block_shared<Shared>(), on the stream of `cuda`. Error: the launch
// fails, or work before it has failed. The message names the kernel by `what`.
template <typename Shared, typename... Parameters>
void launch_sharing(const char* what, const CudaStream& cuda, dim3 grid, dim3 block,
                    void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  cudaLaunchConfig_t shape{};
  shape.gridDim = grid;
  shape.blockDim = block;
  shape.stream = cuda.stream();
  if constexpr (sizeof(Shared) > kStaticSharedBytes) {
    shape.dynamicSmemBytes = sizeof(Shared);
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(sizeof(Shared))),
               what);
  }
  check_cuda(cudaLaunchKernelEx(&shape, kernel, arguments...), what);
}

// The same for a kernel whose shared memory, if any, is at most 48 KiB.
template <typename... Parameters>
void launch(const char* what, const CudaStream& cuda, dim3 grid, dim3 block,
            void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  struct Nothing {};
  launch_sharing<Nothing>(what, cuda, grid, block, kernel, arguments...);
}

// Sums over a warp and over a block, with the same bits each time. For *_cuda.cu only.
inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Every lane ends with the sum, with the same bits each time.
template <typename T>
__device__ T warp_sum(T value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

__device__ inline float warp_max(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// Two sums over the threads of a block of full warps, at most 1024. Every thread ends with them.
template <typename T>
struct SumsOf {
  T first, second;
};
template <typename T>
struct SumsOfWarps {
  SumsOf<T> of[2][kWarp];
};
// `turn`: 0 and 1 in alternation where calls follow each other, so that the sums of one call are
// not overwritten while they are still read. kWarps: of the block, or 0 where the launch decides,
// with the same sums.
template <typename T, unsigned kWarps = 0>
__device__ SumsOf<T> block_sums_in_turn(SumsOf<T> mine, unsigned turn) {
  auto& partial = block_shared<SumsOfWarps<T>>().of[turn];
  mine = {warp_sum(mine.first), warp_sum(mine.second)};
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = mine;
  __syncthreads();
  SumsOf<T> total{0, 0};
  for (unsigned warp = 0; warp < (kWarps > 0 ? kWarps : blockDim.x / kWarp); ++warp) {
    total.first += partial[warp].first;
    total.second += partial[warp].second;
  }
  return total;
}
template <typename T>
__device__ SumsOf<T> block_sums_of(SumsOf<T> mine) {
  __syncthreads();  // the previous sums have been read
  return block_sums_in_turn(mine, 0);
}
using Sums = SumsOf<float>;
__device__ inline Sums block_sums(Sums mine) {
  return block_sums_of(mine);
}
__device__ inline float block_sum(float mine) {
  return block_sums({mine, 0}).first;
}

// Whether all addresses, null ones apart, are multiples of 16 bytes, as load_whole needs.
inline bool are_aligned(std::initializer_list<const void*> addresses) {
  return std::ranges::all_of(
      addresses, [](const void* one) { return reinterpret_cast<uintptr_t>(one) % 16 == 0; });
}

template <typename T>
const T* pointer(const ConstView& view) {
  return static_cast<const T*>(view.raw());
}
template <typename T>
T* pointer(const View& view) {
  return static_cast<T*>(view.raw());
}

// Calls body(tag) with a tag of the activation type as the device represents it.
template <class Body>
void with_device_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(float{});
    case DType::kBF16:
      return body(__nv_bfloat16{});
    case DType::kF16:
      return body(__half{});
    default:
      ONEBIT_INVARIANT(!"a floating-point type of at most 32 bits");
  }
}

// The number of blocks of `size` that cover `count`.
inline unsigned blocks_of(int64_t count, int64_t size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

// The threads of a block that holds one row in registers, eight columns per thread.
inline constexpr int64_t kLargestRow = 4096;
inline unsigned row_threads(int64_t columns, const char* operation) {
  require(columns <= kLargestRow, "{}: rows of {} columns; on CUDA devices at most {} are possible",
          operation, columns, kLargestRow);
  return blocks_of(columns, kEight * kWarp) * kWarp;
}

}  // namespace onebit::kernels::cuda
