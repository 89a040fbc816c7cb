// Building blocks of CUDA kernels: element types, eight elements at a time, sums over a warp and a
// block. For *_cuda.cu only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "onebit/kernels/block_shared_cuda.h"
#include "onebit/kernels/dropout_plan.h"
#include "onebit/kernels/launch_cuda.h"
#include "onebit/tensor/view.h"

namespace onebit::kernels::cuda {

// Elements that a thread processes together: those of one Philox call, 16 bytes of a 16-bit type.
inline constexpr int kEight = 8;
inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFu;

__device__ inline float widen(float value) {
  return value;
}
__device__ inline float widen(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ inline float widen(__half value) {
  return __half2float(value);
}

// Rounds to nearest even.
template <typename T>
__device__ T narrow(float value);
template <>
__device__ inline float narrow<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half narrow<__half>(float value) {
  return __float2half_rn(value);
}

struct Eight {
  float lane[kEight] = {};
};

template <typename T>
__device__ bool is_aligned(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

// Eight elements as they lie in memory, at an address that is a multiple of 16 bytes. Several loads
// of these are in flight together; those of load_eight are not, because of their branches.
template <typename T>
struct alignas(16) Stored {
  T lane[kEight];
};
template <typename T>
__device__ Stored<T> load_stored(const T* from) {
  Stored<T> result;
  constexpr int kWords = kEight * sizeof(T) / sizeof(uint4);
  for (int i = 0; i < kWords; ++i) {
    reinterpret_cast<uint4*>(&result)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  return result;
}
template <typename T>
__device__ Eight widen(const Stored<T>& stored) {
  Eight result;
  for (int i = 0; i < kEight; ++i) result.lane[i] = widen(stored.lane[i]);
  return result;
}
template <typename T>
__device__ Eight load_whole(const T* from) {
  return widen(load_stored(from));
}

template <typename T>
__device__ void store_whole(const Eight& from, T* to) {
  alignas(16) T values[kEight];
  for (int i = 0; i < kEight; ++i) values[i] = narrow<T>(from.lane[i]);
  constexpr int kWords = kEight * sizeof(T) / sizeof(uint4);
  for (int i = 0; i < kWords; ++i) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(values)[i];
  }
}

// Loads elements [0, count) of `from`; the others are zero.
template <typename T>
__device__ Eight load_eight(const T* from, int64_t count) {
  if (count >= kEight && is_aligned(from)) return load_whole(from);
  Eight result;
  for (int i = 0; i < kEight; ++i) {
    if (i < count) result.lane[i] = widen(from[i]);
  }
  return result;
}

template <typename T>
__device__ void store_eight(const Eight& from, T* to, int64_t count) {
  if (count >= kEight && is_aligned(to)) return store_whole(from, to);
  for (int i = 0; i < kEight; ++i) {
    if (i < count) to[i] = narrow<T>(from.lane[i]);
  }
}

// The key of a row's dropout bits; 0 without dropout.
__device__ inline uint64_t row_key_of(const DropoutPlan& plan, int64_t row) {
  return plan.threshold == 0 ? 0 : plan.row_keys[row];
}

// Applies dropout to columns [8 * column_block, + 8) of the row with this key.
__device__ inline void drop_eight(Eight& values, const DropoutPlan& plan, uint64_t row_key,
                                  uint32_t column_block) {
  if (plan.threshold == 0) return;
  const uint32_t kept =
      dropout_keep_bits(plan.round_keys[0], plan.site, row_key, column_block, plan.threshold);
  for (int i = 0; i < kEight; ++i) {
    values.lane[i] = (kept >> i & 1u) != 0 ? values.lane[i] * plan.scale : 0.0f;
  }
}

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

// Two sums over the threads of a block of full warps, at most 1024; every thread ends with them.
template <typename T>
struct SumsOf {
  T first, second;
};
template <typename T>
struct SumsOfWarps {
  SumsOf<T> of[2][kWarp];
};
// `turn`: 0 and 1 in alternation where calls follow each other, so that the sums of one call are
// not overwritten while they are still read.
template <typename T>
__device__ SumsOf<T> block_sums_in_turn(SumsOf<T> mine, unsigned turn) {
  auto& partial = block_shared<SumsOfWarps<T>>().of[turn];
  mine = {warp_sum(mine.first), warp_sum(mine.second)};
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = mine;
  __syncthreads();
  SumsOf<T> total{0, 0};
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) {
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
