// Tiles of 64 tokens by one head of 64 columns in shared memory, and the products of their 16-bit
// values on tensor cores (tensor_core_cuda.h). For *_cuda.cu only.
//
// A warp owns 16 rows of a product. With g = lane / 4 and t = lane % 4 a thread holds elements (g,
// 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of a 16 x 8 result.
#pragma once

#include "onebit/kernels/tensor_core_cuda.h"
#include "onebit/ops/attention_call_cuda.h"

namespace onebit::ops::cuda {

using kernels::cuda::load_matrices;
using kernels::cuda::load_transposed;
using kernels::cuda::multiply_add;
using kernels::cuda::Quad;
using kernels::cuda::start_copy;

inline constexpr int kTile = 64;            // tokens
inline constexpr int kTileRow = kTile + 8;  // padded: rows of 144 bytes avoid bank conflicts
inline constexpr int kTileThreads = 128;    // four warps of 16 rows
inline constexpr float kLog2E = 1.44269504089f, kLn2 = 0.693147180560f;

template <typename T>
struct alignas(16) Tile {
  T data[kTile * kTileRow];

  __device__ uint32_t address(int row, int column) const {
    // In 32 bits: the constant parts become offsets within the instructions.
    return kernels::cuda::shared_address(data) +
           static_cast<uint32_t>(row * kTileRow + column) * uint32_t{sizeof(T)};
  }
};

// Starts copying `count` rows of 64 columns, `stride` elements apart; other rows are zeroed.
template <typename T>
__device__ void start_load(Tile<T>& tile, const T* from, int64_t stride, int count) {
#pragma unroll
  for (int i = 0; i < kTile * 8 / kTileThreads; ++i) {
    const int piece = i * kTileThreads + static_cast<int>(threadIdx.x);
    const int row = piece / 8, column = piece % 8 * 8;
    const bool exists = row < count;
    const T* source = from + (exists ? row * stride : 0) + column;
    start_copy(tile.address(row, column), source, exists);
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

// The 16 rows of this warp as left operands: all 64 columns.
struct Rows16 {
  Quad part[4];
};
template <typename T>
__device__ Rows16 load_rows(const Tile<T>& tile, int warp, int lane) {
  Rows16 rows;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    rows.part[k] = load_matrices(tile.address(warp * 16 + lane % 16, k * 16 + lane / 16 * 8));
  }
  return rows;
}

// result (16 x 8 kBlocks) = rows . (rows [begin, begin + 8 kBlocks) of the tile)^T, over 64
// columns.
template <typename T, int kBlocks>
__device__ void product_transposed(const Rows16& rows, const Tile<T>& tile, int begin, int lane,
                                   float (&result)[kBlocks][4]) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    for (float& one : result[j]) one = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Quad b =
          load_matrices(tile.address(begin + j * 8 + lane % 8, half * 32 + lane / 8 * 8));
      multiply_add(result[j], rows.part[2 * half], b.word[0], b.word[1], T{});
      multiply_add(result[j], rows.part[2 * half + 1], b.word[2], b.word[3], T{});
    }
  }
}

// sum (16 x 64) += weights (16 x 8 kBlocks, laid out as a product) . rows [begin, ...) of tile.
template <typename T, int kBlocks>
__device__ void add_product(const float (&weights)[kBlocks][4], const Tile<T>& tile, int begin,
                            int lane, float (&sum)[8][4]) {
#pragma unroll
  for (int k = 0; k < kBlocks / 2; ++k) {
    const auto& low = weights[2 * k];
    const auto& high = weights[2 * k + 1];
    const Quad a{{packed(low[0], low[1], T{}), packed(low[2], low[3], T{}),
                  packed(high[0], high[1], T{}), packed(high[2], high[3], T{})}};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const Quad b =
          load_transposed(tile.address(begin + k * 16 + lane % 16, j * 16 + lane / 16 * 8));
      multiply_add(sum[2 * j], a, b.word[0], b.word[1], T{});
      multiply_add(sum[2 * j + 1], a, b.word[2], b.word[3], T{});
    }
  }
}

// Writes the rows below `count` of this warp's 16, times the factors of rows g and g + 8.
template <typename T>
__device__ void store_rows(const float (&sum)[8][4], float first, float second, T* to,
                           int64_t stride, int count, int warp, int lane) {
  const int row = warp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
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
