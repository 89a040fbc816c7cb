// The tile that a thread block works on, and the dropout bits of its queries. For *_cuda.cu only.
#pragma once

#include "onebit/ops/attention_tile_cuda.h"

namespace onebit::ops::cuda {

using kernels::cuda::kWarp;

// The tile, and its sequence, that a thread block works on.
struct TilePlace {
  int64_t first;      // first row of the sequence
  int length, begin;  // tokens of the sequence; first token of the tile
  int head, warp, lane;

  __device__ explicit TilePlace(const int32_t* starts)
      : first(starts[blockIdx.z]),
        length(starts[blockIdx.z + 1] - static_cast<int>(first)),
        begin(static_cast<int>(blockIdx.x) * kTile),
        head(static_cast<int>(blockIdx.y)),
        warp(static_cast<int>(threadIdx.x) / kWarp),
        lane(static_cast<int>(threadIdx.x) % kWarp) {}
  __device__ bool exists() const { return begin < length; }
};

// Keep bits of a warp's 16 queries over a tile of keys: one byte for every eight keys.
struct alignas(8) QueryMask {
  uint8_t byte[4][16][8];

  // Bits of rows g and g + 8; bits 2t and 2t + 1 of byte j belong to this thread in block j.
  struct Mine {
    uint64_t first, second;
    // Factor of element `i` in block `j` of a product.
    template <typename T>
    __device__ float factor(const AttentionCall<T>& a, int j, int i, int lane) const {
      const uint64_t bits = i < 2 ? first : second;
      return a.kept(static_cast<uint32_t>(bits >> (8 * j + lane % 4 * 2)), i % 2);
    }
  };
  template <typename T>
  __device__ Mine draw(const AttentionCall<T>& a, const TilePlace& at, int key) {
    __syncwarp();  // the previous bits have been read
    for (int i = at.lane; i < 128; i += kWarp) {
      const int query = at.begin + at.warp * 16 + i / 8;
      const bool exists = query < at.length;
      byte[at.warp][i / 8][i % 8] = static_cast<uint8_t>(
          exists ? a.keep_bits(at.first + query, at.head, key / 8 + i % 8) : 0u);
    }
    __syncwarp();
    const auto* rows = reinterpret_cast<const uint64_t*>(byte[at.warp]);
    return {rows[at.lane / 4], rows[at.lane / 4 + 8]};
  }
};

}  // namespace onebit::ops::cuda
