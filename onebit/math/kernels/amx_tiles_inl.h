// Tiles of AMX and the vectors that fill them, compiled for these instructions in every build.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "hwy/base.h"
#include "onebit/math/kernels/bf16_tile_product.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,prfchw")
namespace onebit::kernels {

// A tile has 16 rows of 64 bytes. One of the left operand is 16 rows with 32 neighbours along the
// depth. One of the right operand is 16 pairs of neighbours along the depth, each of 16 columns. A
// strip is, for every 32 of depth, two tiles.
constexpr int64_t kTileLines = 16, kTileDepth = 32, kTileElements = kTileLines * kTileDepth;

HWY_INLINE __mmask16 lanes16(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1);
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

HWY_INLINE void write_tile(const __m512i (&x)[16], bf16* to) {
  for (int64_t i = 0; i < kTileLines; ++i) _mm512_store_si512(to + kTileDepth * i, x[i]);
}

// Completes earlier stores: GCC's intrinsics do not say that loading a tile reads memory.
HWY_INLINE void finish_stores() {
  asm volatile("" ::: "memory");
}

// What LDTILECFG reads: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

}  // namespace onebit::kernels
HWY_POP_ATTRIBUTES
