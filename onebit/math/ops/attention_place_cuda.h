// The rows that a thread block works on, and the dropout bits of its queries. For *_cuda.cu only.
#pragma once

#include "onebit/math/ops/attention_tile_cuda.h"

namespace onebit::ops::cuda {

using kernels::cuda::kWarp;

// The rows, and their sequence, that a thread block works on. Warps 4 g to 4 g + 3 have tile g.
struct TilePlace {
  int64_t first;      // first row of the sequence
  int length, begin;  // tokens of the sequence, the block's first token
  int head, warp, lane;

  // `rows`: of a block.
  __device__ TilePlace(const int32_t* starts, int rows)
      : first(starts[blockIdx.z]),
        length(starts[blockIdx.z + 1] - static_cast<int>(first)),
        begin(static_cast<int>(blockIdx.x) * rows),
        head(static_cast<int>(blockIdx.y)),
        // One value for a warp, as the compiler would not know from the thread's number.
        warp(__shfl_sync(kernels::cuda::kAllLanes, static_cast<int>(threadIdx.x) / kWarp, 0)),
        lane(static_cast<int>(threadIdx.x) % kWarp) {}
  __device__ bool exists() const { return begin < length; }
  __device__ int group() const { return warp / 4; }
};

// The word with its bits moved down by `count`, those that fall out at the bottom back in at the
// top. A plain shift would not do: the compiler replaces the later tests of constant bits by tests
// of bits that it computes anew each time.
__device__ inline uint32_t rotated_down(uint32_t word, int count) {
  return __funnelshift_r(word, word, static_cast<uint32_t>(count));
}

// The row keys of a block's queries, or 0 for queries that do not exist.
template <int kRows>
struct RowKeys {
  uint64_t of[kRows];

  // Every thread of the block takes part. The keys are there after a barrier.
  template <typename T>
  __device__ void load(const AttentionCall<T>& a, const TilePlace& at, int query) {
    const int i = static_cast<int>(threadIdx.x);
    if (i < kRows) of[i] = query + i < at.length ? a.dropout.row_keys[at.first + query + i] : 0;
  }
};

// Whether a block's queries keep each of 64 keys: bit i of a query's word belongs to key i.
template <int kRows>
struct KeptKeys {
  uint64_t word[kRows];

  // Bits of rows g and g + 8 of the warp's 16. Bits 0 and 1 of byte j belong to this thread in
  // block j.
  struct Mine {
    uint32_t first[2] = {~0u, ~0u}, second[2] = {~0u, ~0u};
    // Whether element `i` in block `j` of a product is kept. With constant `i` and `j` this is one
    // test of a bit.
    __device__ bool keeps(int j, int i) const {
      const uint32_t half = i < 2 ? first[j / 4] : second[j / 4];
      return (half >> (8 * (j % 4) + i % 2) & 1u) != 0;
    }
  };
  __device__ Mine mine(const TilePlace& at) const {
    const auto* rows = reinterpret_cast<const uint2*>(word + at.warp * 16 + at.lane / 4);
    const uint2 first = rows[0], second = rows[8];
    const int begin = at.lane % 4 * 2;
    return {{rotated_down(first.x, begin), rotated_down(first.y, begin)},
            {rotated_down(second.x, begin), rotated_down(second.y, begin)}};
  }

  // Draws the words of the warp's queries over the keys from `key` on.
  template <typename T>
  __device__ void draw(const AttentionCall<T>& a, const RowKeys<kRows>& keys, const TilePlace& at,
                       int key) {
    __syncwarp();  // the previous words have been read
    // Half a word a thread, of 16 queries.
    auto* halves = reinterpret_cast<uint32_t*>(word + at.warp * 16);
    halves[at.lane] =
        a.keep_bits(keys.of[at.warp * 16 + at.lane / 2], at.head, key + at.lane % 2 * kWarp);
    __syncwarp();
  }
  // Copies them to global memory, for kernels to come.
  template <typename T>
  __device__ void store(const AttentionCall<T>& a, const TilePlace& at, int key) const {
    const int row = at.warp * 16 + at.lane;
    if (at.lane >= 16 || at.begin + row >= at.length) return;
    *a.kept_word(at.first + at.begin + row, at.head, key / kTile) = word[row];
  }
};

}  // namespace onebit::ops::cuda
