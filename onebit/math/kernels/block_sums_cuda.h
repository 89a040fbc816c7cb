// Sums over a warp and over a block, with the same bits each time. For *_cuda.cu only.
#pragma once

#include "onebit/math/kernels/block_shared_cuda.h"

namespace onebit::kernels::cuda {

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

}  // namespace onebit::kernels::cuda
