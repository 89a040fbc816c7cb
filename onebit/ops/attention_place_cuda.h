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

// The word with its bits moved down by `count`, those that fall out at the bottom back in at the
// top. A plain shift would not do: the compiler replaces the later tests of constant bits by tests
// of bits that it computes anew each time.
__device__ inline uint32_t rotated_down(uint32_t word, int count) {
  return __funnelshift_r(word, word, static_cast<uint32_t>(count));
}

// The row keys of a tile of queries; 0 for queries that do not exist.
struct TileKeys {
  uint64_t of[kTile];

  // Every thread of the block takes part; the keys are there after a barrier.
  template <typename T>
  __device__ void load(const AttentionCall<T>& a, const TilePlace& at, int query) {
    const int i = static_cast<int>(threadIdx.x);
    if (i < kTile) of[i] = query + i < at.length ? a.dropout.row_keys[at.first + query + i] : 0;
  }
};

// Keep bits of a warp's 16 queries over a tile of keys: one byte for every eight keys.
struct alignas(8) QueryMask {
  uint8_t byte[4][16][8];

  // Bits of rows g and g + 8; bits 0 and 1 of byte j belong to this thread in block j.
  struct Mine {
    uint32_t first[2], second[2];
    // Whether element `i` in block `j` of a product is kept. With constant `i` and `j` this is one
    // test of a bit.
    __device__ bool keeps(int j, int i) const {
      const uint32_t word = i < 2 ? first[j / 4] : second[j / 4];
      return (word >> (8 * (j % 4) + i % 2) & 1u) != 0;
    }
  };
  template <typename T>
  __device__ Mine draw(const AttentionCall<T>& a, const TileKeys& keys, const TilePlace& at,
                       int key) {
    __syncwarp();  // the previous bits have been read
    const int block = at.lane % 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int query = i * 4 + at.lane / 8;
      byte[at.warp][query][block] = static_cast<uint8_t>(
          a.keep_bits(keys.of[at.warp * 16 + query], at.head, key / 8 + block));
    }
    __syncwarp();
    const auto* rows = reinterpret_cast<const uint2*>(byte[at.warp]);
    const uint2 first = rows[at.lane / 4], second = rows[at.lane / 4 + 8];
    const int mine = at.lane % 4 * 2;
    return {{rotated_down(first.x, mine), rotated_down(first.y, mine)},
            {rotated_down(second.x, mine), rotated_down(second.y, mine)}};
  }
};

}  // namespace onebit::ops::cuda
