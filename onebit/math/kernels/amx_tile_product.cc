// bf16_tile_product() by tiles of AMX.
#include <immintrin.h>

#include <algorithm>

#include "hwy/base.h"
#include "onebit/math/kernels/amx_product.h"
#include "onebit/math/kernels/amx_tiles_inl.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,prfchw")
namespace onebit::kernels {

namespace {

constexpr int64_t kTilePairs = kTileDepth / 2;

// Tiles in memory: the first of a step, the second beside it, and those of the next step. Distances
// are elements.
struct Tiles {
  const bf16* first;
  int64_t row, second, step;
};

// Copies pairs of at most 32 rows of the left operand to whole tiles, padded with zeros.
Tiles copy_left(const Bf16TileProduct& t, int64_t row, int64_t pair, int64_t pairs, bf16* to) {
  const bf16* from = t.a + row * t.a_row + pair * t.a_step;
  const int64_t rows = std::min(kAmxStrip, t.m - row);
  const Tiles copied{to, kTileDepth, kTileElements, 2 * kTileElements};
  if (t.a_step == 2) {
    amx_pack_left({.first = from,
                   .lines = rows,
                   .depth = 2 * pairs,
                   .stride = t.a_row,
                   .lines_neighbour = false},
                  to);
    return copied;
  }
  __m512i x[kTileLines];
  for (int64_t p = 0; p < pairs; p += kTilePairs) {
    for (int64_t tile = 0; tile < kAmxStrip; tile += kTileLines, to += kTileElements) {
      const __mmask16 lanes = lanes16(rows - tile);
      for (int64_t i = 0; i < kTileLines; ++i) {
        x[i] = p + i < pairs ? _mm512_maskz_loadu_epi32(lanes, from + (p + i) * t.a_step + 2 * tile)
                             : _mm512_setzero_si512();
      }
      transpose(x);
      write_tile(x, to);
    }
  }
  return copied;
}

Tiles left_tiles(const Bf16TileProduct& t, int64_t row, int64_t pair, int64_t pairs, bf16* to) {
  const bf16* from = t.a + row * t.a_row + pair * t.a_step;
  const bool is_whole = pairs % kTilePairs == 0 && std::min(kAmxStrip, t.m - row) % kTileLines == 0;
  // A tile whose rows are in two lines of the cache each is read at a quarter of the speed.
  const bool is_aligned = reinterpret_cast<uintptr_t>(from) % 64 == 0 && t.a_row % kTileDepth == 0;
  if (t.a_step != 2 || !is_whole || !is_aligned) return copy_left(t, row, pair, pairs, to);
  return {from, t.a_row, kTileLines * t.a_row, kTileDepth};
}

template <int kRows, int kColumns>
HWY_INLINE void multiply_step(const Tiles& left, const Tiles& right) {
  const int64_t left_bytes = 2 * left.row, right_bytes = 2 * right.row;
  finish_stores();
  _tile_loadd(6, right.first, right_bytes);
  _tile_loadd(4, left.first, left_bytes);
  if (kColumns > 1) _tile_loadd(7, right.first + right.second, right_bytes);
  if (kRows > 1) _tile_loadd(5, left.first + left.second, left_bytes);
  _tile_dpbf16ps(0, 4, 6);
  if (kColumns > 1) _tile_dpbf16ps(1, 4, 7);
  if (kRows > 1) _tile_dpbf16ps(2, 5, 6);
  if (kRows > 1 && kColumns > 1) _tile_dpbf16ps(3, 5, 7);
}

// What one block of results does with its sums.
struct Finish {
  bool add_before, scale;
};

// Up to 32 rows and columns of c, from `pairs` pairs of the depth.
template <int kRows, int kColumns>
void tile_block(const Bf16TileProduct& t, int64_t rows, Tiles left, Tiles right, int64_t pairs,
                const Finish& finish, float* c) {
  _tile_zero(0);
  if (kColumns > 1) _tile_zero(1);
  if (kRows > 1) _tile_zero(2);
  if (kRows > 1 && kColumns > 1) _tile_zero(3);
  int64_t p = 0;
  for (; p + kTilePairs <= pairs; p += kTilePairs) {
    multiply_step<kRows, kColumns>(left, right);
    left.first += left.step;
    right.first += right.step;
  }
  if (p < pairs) {
    alignas(64) bf16 last[kTilePairs * 2 * kAmxStrip];
    for (int64_t i = 0; i < kTilePairs; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        const bf16* from = right.first + i * right.row + j * right.second;
        _mm512_store_si512(last + i * 2 * kAmxStrip + j * kTileDepth,
                           p + i < pairs ? _mm512_loadu_si512(from) : _mm512_setzero_si512());
      }
    }
    multiply_step<kRows, kColumns>(left, {last, 2 * kAmxStrip, kTileDepth, 0});
  }
  const bool as_they_are = !finish.add_before && !finish.scale && rows == kRows * kTileLines;
  alignas(64) float copy[kAmxStrip * kAmxStrip];
  float* const to = as_they_are ? c : copy;
  const int64_t to_row = as_they_are ? t.c_row : kAmxStrip;
  float* const lower = to + kTileLines * to_row;
  _tile_stored(0, to, 4 * to_row);
  if (kColumns > 1) _tile_stored(1, to + kTileLines, 4 * to_row);
  if (kRows > 1) _tile_stored(2, lower, 4 * to_row);
  if (kRows > 1 && kColumns > 1) _tile_stored(3, lower + kTileLines, 4 * to_row);
  if (as_they_are) return;
  const __m512 factor = _mm512_set1_ps(finish.scale ? t.factor : 1.0f);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < kColumns * kTileLines; j += kTileLines) {
      float* const place = c + i * t.c_row + j;
      __m512 sum = _mm512_load_ps(copy + i * kAmxStrip + j);
      if (finish.add_before) sum = _mm512_add_ps(_mm512_loadu_ps(place), sum);
      _mm512_storeu_ps(place, _mm512_mul_ps(factor, sum));
    }
  }
}

}  // namespace

void amx_tile_product(const Bf16TileProduct& t) {
  constexpr int64_t kPairs = 256;  // whose left tiles are in the first cache
  alignas(64) bf16 copy[kAmxStrip * 2 * kPairs];
  const TileShapes shapes;
  finish_stores();
  _tile_loadconfig(&shapes);
  const int64_t column_tiles = (t.n + kTileLines - 1) / kTileLines;
  for (int64_t pair = 0; pair < t.pairs; pair += kPairs) {
    const int64_t pairs = std::min(kPairs, t.pairs - pair);
    const Finish finish{.add_before = t.add || pair > 0,
                        .scale = !t.add && t.factor != 1 && pair + pairs == t.pairs};
    for (int64_t row = 0; row < t.m; row += kAmxStrip) {
      const int64_t rows = std::min(kAmxStrip, t.m - row);
      const Tiles left = left_tiles(t, row, pair, pairs, copy);
      for (int64_t tile = 0; tile < column_tiles; tile += 2) {
        const Tiles right{t.b + pair * t.b_row + tile * kTileDepth, t.b_row, kTileDepth,
                          kTilePairs * t.b_row};
        float* const c = t.c + row * t.c_row + tile * kTileLines;
        const bool two_columns = tile + 1 < column_tiles, two_rows = rows > kTileLines;
        const auto multiply = two_rows      ? two_columns ? tile_block<2, 2> : tile_block<2, 1>
                                   : two_columns ? tile_block<1, 2>
                                            : tile_block<1, 1>;
        multiply(t, rows, left, right, pairs, finish, c);
      }
    }
  }
  _tile_release();
}

}  // namespace onebit::kernels
HWY_POP_ATTRIBUTES
