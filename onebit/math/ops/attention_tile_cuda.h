// Tiles of 64 tokens by one head of 32, 64 or 128 columns in shared memory, and what attention's
// kernels do with them however they multiply (attention_warp_products_cuda.h,
// attention_warpgroup_products_cuda.h). For *_cuda.cu only.
//
// A warp owns 16 rows of a product. With g = lane / 4 and t = lane % 4 a thread holds elements (g,
// 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of each 16 x 8 block of it.
#pragma once

#include "onebit/math/kernels/tensor_core_cuda.h"
#include "onebit/math/ops/attention_call_cuda.h"

namespace onebit::ops::cuda {

inline constexpr int kTile = 64;  // tokens
// For the tiles that a block passes by: one is filled while the other is read.
inline constexpr int kTileSlots = 2;
inline constexpr float kLog2E = 1.44269504089f, kLn2 = 0.693147180560f;

// Starts copying `count` rows of a tile, `stride` elements apart. The tile's other rows are zeroed.
// All `kThreads` threads of the block take part. Addresses within a tile are computed in 32
// bits, which a third of the instructions suffices for.
template <int kThreads, class Tile, typename T>
__device__ void start_load(Tile& tile, const T* from, uint32_t stride, int count) {
  constexpr int kPieces = Tile::kHead / 8;
  const int first = static_cast<int>(threadIdx.x) / kPieces,
            column = static_cast<int>(threadIdx.x) % kPieces * 8;
#pragma unroll
  for (int i = 0; i < kTile * kPieces / kThreads; ++i) {
    const int row = first + i * (kThreads / kPieces);
    const bool exists = row < count;
    const uint32_t offset = static_cast<uint32_t>(exists ? row : 0) * stride;
    kernels::cuda::start_copy(tile.address(row, column), from + (offset + column), exists);
  }
}

__device__ inline uint32_t packed(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
__device__ inline uint32_t packed(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
// A product as left operands: columns [16 k, 16 k + 16) for each k.
template <typename T, int kBlocks>
__device__ void pack(const float (&product)[kBlocks][4], kernels::cuda::Quad (&left)[kBlocks / 2]) {
#pragma unroll
  for (int k = 0; k < kBlocks / 2; ++k) {
    const auto& low = product[2 * k];
    const auto& high = product[2 * k + 1];
    left[k] = {{packed(low[0], low[1], T{}), packed(low[2], low[3], T{}),
                packed(high[0], high[1], T{}), packed(high[2], high[3], T{})}};
  }
}

// Writes the rows below `count` of this warp's 16, times the factors of rows g and g + 8.
template <typename T, int kBlocks>
__device__ void store_rows(const float (&sum)[kBlocks][4], float first, float second, T* to,
                           int64_t stride, int count, int warp, int lane) {
  const int row = warp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    const int column = j * 8 + lane % 4 * 2;
    if (row < count) {
      *reinterpret_cast<uint32_t*>(to + row * stride + column) =
          packed(sum[j][0] * first, sum[j][1] * first, T{});
    }
    if (row + 8 < count) {
      *reinterpret_cast<uint32_t*>(to + (row + 8) * stride + column) =
          packed(sum[j][2] * second, sum[j][3] * second, T{});
    }
  }
}

}  // namespace onebit::ops::cuda
