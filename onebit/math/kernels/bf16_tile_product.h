// Products of small bf16 matrices in cache, summed in f32, by the processor's own bf16 instructions
// (AVX512_BF16: Zen 4 and later, Xeons since Cooper Lake), which Highway 1.0 does not provide. They
// multiply two neighbours along the summed index at once, so operands are pairs: two bf16 side by
// side. Subnormal numbers count as zero, as the instructions define.
#pragma once

#include <cstdint>

#include "onebit/ground/base/dtype.h"

namespace onebit::kernels {

// Whether this build and this processor have the instructions. If not, the functions below must not
// be called.
bool has_bf16_products();

// c [m, n] = factor * a [m, k] . b [k, n], or c += a . b with `add`. Pair p is elements 2 p and
// 2 p + 1 of the sum: of row i of a at a[i * a_row + p * a_step], of column j of b at
// b[p * b_row + 2 * j]. Columns of b and c are padded to whole vectors of kBf16Columns.
struct Bf16TileProduct {
  int64_t m, n, pairs;
  const bf16* a;
  int64_t a_row, a_step;
  const bf16* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  float factor = 1;
  bool add = false;
};
void bf16_tile_product(const Bf16TileProduct&);

inline constexpr int64_t kBf16Columns = 16;
inline int64_t bf16_pairs(int64_t count) {
  return (count + 1) / 2;
}

// Converts from [rows, columns] to pairs along its columns, transposed: [columns / 2, rows, 2].
// `columns` is even, and rows are padded with zeros to whole vectors.
void pair_columns(const bf16* from, int64_t from_row, int64_t rows, int64_t columns, bf16* to,
                  int64_t to_row);

// Converts from [rows, columns] to pairs along its rows: [rows / 2, columns, 2]. A last odd row is
// paired with zeros, and columns are padded with zeros to whole vectors.
void pair_rows(const bf16* from, int64_t from_row, int64_t rows, int64_t columns, bf16* to,
               int64_t to_row);

// Does the same for f32, rounded to nearest even.
void round_to_row_pairs(const float* from, int64_t from_row, int64_t rows, int64_t columns,
                        bf16* to, int64_t to_row);

// to [columns] = from [columns] * factor, rounded to nearest even.
void round_row(const float* from, int64_t columns, float factor, bf16* to);

}  // namespace onebit::kernels
