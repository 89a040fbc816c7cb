// The rows that a thread block works on, and the dropout bits of its queries. For *_cuda.cu only.
#pragma once

#include "onebit/math/attention/attention_tile_cuda.h"

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

// The sums over a block's rows of the columns of a head's gradients, which are the gradient of the
// bias of queries, keys and values. For *_cuda.cu only.

// For the sums of a block's rows: two rows of each thread's are added beforehand.
template <int kRows, int kColumns>
struct ColumnSums {
  static constexpr int kParts = kRows * 2 / kColumns;  // threads to a column
  float row[kRows / 2][kColumns];
  float part[kParts][kColumns];

  // Writes the sums, times `factor`, of the rows that exist. Memory of the block that is not used
  // any more may hold this object. All threads take part.
  __device__ void write(const float (&sum)[kColumns / 8][4], float factor, const TilePlace& at,
                        float* to) {
    const int first = at.begin + at.warp * 16 + at.lane / 4, pair = at.lane % 4 * 2;
    const bool has_first = first < at.length, has_second = first + 8 < at.length;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const auto of_rows = [&](int i) {
        return (has_first ? sum[j][i] * factor : 0) + (has_second ? sum[j][i + 2] * factor : 0);
      };
      *reinterpret_cast<float2*>(&row[at.warp * 8 + at.lane / 4][j * 8 + pair]) = {of_rows(0),
                                                                                   of_rows(1)};
    }
    __syncthreads();
    const int column = static_cast<int>(threadIdx.x) % kColumns;
    const int mine = static_cast<int>(threadIdx.x) / kColumns;
    constexpr int kRowsOfPart = kRows / 2 / kParts;
    float total = 0;
    for (int i = 0; i < kRowsOfPart; ++i) total += row[mine * kRowsOfPart + i][column];
    part[mine][column] = total;
    __syncthreads();
    if (mine > 0) return;
    for (int i = 1; i < kParts; ++i) total += part[i][column];
    to[column] = total;
  }
};

// A T in the memory of other objects.
template <class T, class Memory>
__device__ T& over(Memory& memory) {
  static_assert(sizeof(T) <= sizeof(Memory) && alignof(T) <= alignof(Memory));
  return reinterpret_cast<T&>(memory);
}

// What a block without rows adds to the sums: nothing.
template <int kColumns, typename T>
__device__ void write_no_sums(const AttentionCall<T>& a, int part, int head) {
  if (a.bias_sums != nullptr && threadIdx.x < kColumns) a.bias_place(part, head)[threadIdx.x] = 0;
}

}  // namespace onebit::ops::cuda
