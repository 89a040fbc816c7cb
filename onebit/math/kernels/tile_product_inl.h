// Products of small f32 matrices in cache: the arithmetic of attention. Right operands and results
// have rows padded to whole vectors, so columns need no tail.

#if defined(ONEBIT_KERNELS_TILE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_TILE_PRODUCT_INL_H_
#undef ONEBIT_KERNELS_TILE_PRODUCT_INL_H_
#else
#define ONEBIT_KERNELS_TILE_PRODUCT_INL_H_
#endif

#include <algorithm>

#include "onebit/math/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

// c [m, n] = or += a [m, k] . b [k, n]. Element (i, p) of a is a[i * a_row + p * a_step], so a may
// be read transposed.
struct TileProduct {
  int64_t m, n, k;
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
};

HWY_INLINE int64_t padded(int64_t columns) {
  return (columns + lane_count() - 1) / lane_count() * lane_count();
}

// kRows x (kVectors vectors) of c, held in registers.
template <int kRows, int kVectors, bool kAdd>
HWY_INLINE void tile(const TileProduct& t, const float* a, const float* b, float* c) {
  const int64_t lanes = lane_count();
  Vector sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = kAdd ? hn::LoadU(F32(), c + i * t.c_row + j * lanes) : zero();
    }
  }
  for (int64_t p = 0; p < t.k; ++p) {
    Vector right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = hn::LoadU(F32(), b + p * t.b_row + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const Vector left = set(a[i * t.a_row + p * t.a_step]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      hn::StoreU(sum[i][j], F32(), c + i * t.c_row + j * lanes);
    }
  }
}

template <int kVectors, bool kAdd>
HWY_INLINE void column_strip(const TileProduct& t, int64_t column) {
  const float* b = t.b + column;
  float* c = t.c + column;
  int64_t i = 0;
  for (; i + 6 <= t.m; i += 6) {
    tile<6, kVectors, kAdd>(t, t.a + i * t.a_row, b, c + i * t.c_row);
  }
  const float* a = t.a + i * t.a_row;
  c += i * t.c_row;
  switch (t.m - i) {
    case 1:
      return tile<1, kVectors, kAdd>(t, a, b, c);
    case 2:
      return tile<2, kVectors, kAdd>(t, a, b, c);
    case 3:
      return tile<3, kVectors, kAdd>(t, a, b, c);
    case 4:
      return tile<4, kVectors, kAdd>(t, a, b, c);
    case 5:
      return tile<5, kVectors, kAdd>(t, a, b, c);
    default:
      return;
  }
}

template <bool kAdd>
void tile_product(const TileProduct& t) {
  const int64_t lanes = lane_count(), columns = padded(t.n);
  int64_t column = 0;
  for (; column + 2 * lanes <= columns; column += 2 * lanes) column_strip<2, kAdd>(t, column);
  if (column < columns) column_strip<1, kAdd>(t, column);
}

// to [rows, padded columns] = from [rows, columns] * factor, padding zero.
template <typename T>
void pack_rows(const T* from, int64_t from_row, int64_t rows, int64_t columns, float factor,
               float* to, int64_t to_row) {
  for (int64_t row = 0; row < rows; ++row) {
    for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
      const Vector value = hn::Mul(load(from + row * from_row + i, lanes), set(factor));
      hn::StoreU(value, F32(), to + row * to_row + i);
    });
  }
}

// to [columns, padded rows] = from [rows, columns] transposed, padding zero.
template <typename T>
void pack_transposed(const T* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                     int64_t to_row) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) {
      to[i * to_row + row] = static_cast<float>(from[row * from_row + i]);
    }
  }
  for (int64_t i = 0; i < columns; ++i) {
    std::fill(to + i * to_row + rows, to + i * to_row + padded(rows), 0.0f);
  }
}

// to [rows, columns] = from [rows, columns] * factor.
template <typename T>
void unpack_rows(const float* from, int64_t from_row, int64_t rows, int64_t columns, float factor,
                 T* to, int64_t to_row) {
  for (int64_t row = 0; row < rows; ++row) {
    for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
      const Vector value = hn::LoadU(F32(), from + row * from_row + i);
      store(hn::Mul(value, set(factor)), to + row * to_row + i, lanes);
    });
  }
}

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
