// The sums over a block's rows of the columns of a head's gradients, which are the gradient of the
// bias of queries, keys and values. For *_cuda.cu only.
#pragma once

#include "onebit/math/ops/attention_place_cuda.h"

namespace onebit::ops::cuda {

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
