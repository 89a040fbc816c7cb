#include "onebit/math/kernels/bf16_tile_product.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "hwy/base.h"
#include "onebit/math/kernels/amx_product.h"

namespace onebit::kernels {

bool has_bf16_products() {
  static const bool here =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
  return here;
}

}  // namespace onebit::kernels

// The functions up to HWY_POP_ATTRIBUTES are compiled for these instructions in every build.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512bf16")
namespace onebit::kernels {

namespace {

constexpr int64_t kLanes = kBf16Columns;

// The lanes that exist in a vector from element `begin` of `count`.
HWY_INLINE __mmask16 lanes_from(int64_t begin, int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count - begin, 0, kLanes)) - 1);
}

HWY_INLINE __m512bh pair_in_all_lanes(const bf16* pair) {
  int32_t word;
  std::memcpy(&word, pair, sizeof word);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
}

// kRows x kVectors vectors of c, held in registers.
template <int kRows, int kVectors>
HWY_INLINE void tile(const Bf16TileProduct& t, const bf16* a, const bf16* b, float* c) {
  __m512 sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) sum[i][j] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < t.pairs; ++p) {
    __m512bh right[kVectors];
    for (int j = 0; j < kVectors; ++j) {
      right[j] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + p * t.b_row + 2 * kLanes * j));
    }
    for (int i = 0; i < kRows; ++i) {
      const __m512bh left = pair_in_all_lanes(a + i * t.a_row + p * t.a_step);
      for (int j = 0; j < kVectors; ++j) {
        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], left, right[j]);
      }
    }
  }
  const __m512 factor = _mm512_set1_ps(t.factor);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      float* to = c + i * t.c_row + kLanes * j;
      _mm512_storeu_ps(to, t.add ? _mm512_add_ps(_mm512_loadu_ps(to), sum[i][j])
                                 : _mm512_mul_ps(factor, sum[i][j]));
    }
  }
}

// 6 rows and 4 vectors are 24 sums of 32 registers, fed by 10 loads a pair.
template <int kVectors>
void column_strip(const Bf16TileProduct& t, int64_t column) {
  const bf16 *a = t.a, *b = t.b + 2 * column;
  float* c = t.c + column;
  int64_t left = t.m;
  for (; left >= 6; left -= 6, a += 6 * t.a_row, c += 6 * t.c_row) tile<6, kVectors>(t, a, b, c);
  switch (left) {
    case 1:
      return tile<1, kVectors>(t, a, b, c);
    case 2:
      return tile<2, kVectors>(t, a, b, c);
    case 3:
      return tile<3, kVectors>(t, a, b, c);
    case 4:
      return tile<4, kVectors>(t, a, b, c);
    case 5:
      return tile<5, kVectors>(t, a, b, c);
    default:
      return;
  }
}

// Transposes 16 rows of 16 words to 16 columns of 16 words.
HWY_INLINE void transpose(__m512i (&x)[16]) {
  __m512i y[16];
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  // x[i + j]: words j, 4 + j, 8 + j and 12 + j of rows i to i + 3, each in a quarter of the vector.
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    const __m512i first = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x44);
    const __m512i second = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x44);
    const __m512i third = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xEE);
    const __m512i fourth = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xEE);
    x[j] = _mm512_shuffle_i32x4(first, second, 0x88);
    x[4 + j] = _mm512_shuffle_i32x4(first, second, 0xDD);
    x[8 + j] = _mm512_shuffle_i32x4(third, fourth, 0x88);
    x[12 + j] = _mm512_shuffle_i32x4(third, fourth, 0xDD);
  }
}

// The pairs of the lanes of two vectors of 16-bit words.
HWY_INLINE __m512i paired(__m256i first, __m256i second) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

HWY_INLINE __m256i rounded(__m512 value) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
}

}  // namespace

void bf16_tile_product(const Bf16TileProduct& t) {
  if (has_amx_products()) return amx_tile_product(t);
  int64_t column = 0;
  for (; column + 3 * kLanes < t.n; column += 4 * kLanes) column_strip<4>(t, column);
  switch ((t.n - column + kLanes - 1) / kLanes) {
    case 1:
      return column_strip<1>(t, column);
    case 2:
      return column_strip<2>(t, column);
    case 3:
      return column_strip<3>(t, column);
    default:
      return;
  }
}

void pair_columns(const bf16* from, int64_t from_row, int64_t rows, int64_t columns, bf16* to,
                  int64_t to_row) {
  const int64_t pairs = columns / 2;
  for (int64_t row = 0; row < rows; row += kLanes) {
    for (int64_t pair = 0; pair < pairs; pair += kLanes) {
      const __mmask16 there = lanes_from(pair, pairs);
      __m512i words[16];
      for (int64_t i = 0; i < kLanes; ++i) {
        const __mmask16 lanes = row + i < rows ? there : __mmask16{0};
        const bf16* place = from + std::min(row + i, rows - 1) * from_row + 2 * pair;
        words[i] = _mm512_maskz_loadu_epi32(lanes, place);
      }
      transpose(words);
      const int64_t count = std::min(kLanes, pairs - pair);
      for (int64_t i = 0; i < count; ++i) {
        _mm512_storeu_si512(to + (pair + i) * to_row + 2 * row, words[i]);
      }
    }
  }
}

void pair_rows(const bf16* from, int64_t from_row, int64_t rows, int64_t columns, bf16* to,
               int64_t to_row) {
  for (int64_t row = 0; row < rows; row += 2, to += to_row) {
    const bf16* first = from + row * from_row;
    const bool both = row + 1 < rows;
    const bf16* second = both ? first + from_row : first;
    for (int64_t i = 0; i < columns; i += kLanes) {
      const __mmask16 lanes = lanes_from(i, columns), of_second = both ? lanes : __mmask16{0};
      _mm512_storeu_si512(to + 2 * i, paired(_mm256_maskz_loadu_epi16(lanes, first + i),
                                             _mm256_maskz_loadu_epi16(of_second, second + i)));
    }
  }
}

void round_to_row_pairs(const float* from, int64_t from_row, int64_t rows, int64_t columns,
                        bf16* to, int64_t to_row) {
  for (int64_t row = 0; row < rows; row += 2, to += to_row) {
    const float* first = from + row * from_row;
    const bool both = row + 1 < rows;
    const float* second = both ? first + from_row : first;
    for (int64_t i = 0; i < columns; i += kLanes) {
      const __mmask16 lanes = lanes_from(i, columns), of_second = both ? lanes : __mmask16{0};
      const __m256i low = rounded(_mm512_maskz_loadu_ps(lanes, first + i));
      const __m256i high = rounded(_mm512_maskz_loadu_ps(of_second, second + i));
      _mm512_storeu_si512(to + 2 * i, paired(low, high));
    }
  }
}

void round_row(const float* from, int64_t columns, float factor, bf16* to) {
  const __m512 factors = _mm512_set1_ps(factor);
  int64_t i = 0;
  for (; i + 2 * kLanes <= columns; i += 2 * kLanes) {
    const __m512 low = _mm512_mul_ps(_mm512_loadu_ps(from + i), factors);
    const __m512 high = _mm512_mul_ps(_mm512_loadu_ps(from + i + kLanes), factors);
    _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  for (; i < columns; i += kLanes) {
    const __mmask16 lanes = lanes_from(i, columns);
    const __m512 value = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, from + i), factors);
    _mm256_mask_storeu_epi16(to + i, lanes, rounded(value));
  }
}

}  // namespace onebit::kernels
HWY_POP_ATTRIBUTES
