// Replaces kernels/warpgroup_cuda.h on the emulated device: its folder is searched first.
// Implements the PTX manual's section "wgmma" (m64n32k16, m64n64k16, 16-bit types, 128- and 64-byte
// swizzling). A warp computes its 16 of the 64 rows when its lanes wait for the product.
#pragma once

#include <algorithm>
#include <array>

#include "onebit/math/kernels/tensor_core_cuda.h"

namespace onebit::kernels::cuda {

inline constexpr bool kHasWarpgroupProducts = true;

template <int kRowBytes>
struct SwizzledRows {
  static_assert(kRowBytes == 128 || kRowBytes == 64);
  uint32_t address;

  static SwizzledRows at(uint32_t address) {
    if (address % 1024 != 0)
      emulated_cuda::fault("swizzled rows that begin at no multiple of 1024");
    return {address};
  }
  SwizzledRows rows_on(int rows) const {
    if (rows % 8 != 0) emulated_cuda::fault("swizzled rows from no multiple of 8 on");
    return {address + static_cast<uint32_t>(rows) * kRowBytes};
  }
  SwizzledRows columns_on(int columns) const {
    return {address + static_cast<uint32_t>(columns) * 2};
  }
  // Returns eight values. Bits 4 to 6 of an address are XORed with bits 7 to 9, or 4 and 5 with 7
  // and 8.
  std::array<uint16_t, 8> piece(int row, int number) const {
    const uint32_t plain =
        address + static_cast<uint32_t>(row) * kRowBytes + static_cast<uint32_t>(number) * 16;
    return emulated_cuda::shared_piece(plain ^ (plain >> 7 & (kRowBytes / 16 - 1u)) << 4);
  }
};

inline void publish_shared_writes() {
  emulated_cuda::publish_shared_writes();
}
inline void publish_registers() {
  emulated_cuda::publish_registers();
}
inline void end_product_group() {
  emulated_cuda::end_product_group();
}
inline void wait_for_products() {
  emulated_cuda::wait_for_products();
}
template <int kBlocks>
void finished(float (&)[kBlocks][4]) {}

// 16 columns of a row, or 16 rows of a column, and two of them.
using Sixteen = std::array<float, 16>;
using Two = std::array<Sixteen, 2>;

template <typename T, class Rows>
Sixteen columns_of(Rows rows, int row) {
  Sixteen values;
  for (int half = 0; half < 2; ++half) {
    const auto piece = rows.piece(row, half);
    for (int i = 0; i < 8; ++i) values[half * 8 + i] = half_of(piece[i], 0, T{});
  }
  return values;
}

// Adds the thread's elements of left . right^T, or of left . right, to c. `left`: rows g and g + 8
// of the warp's 16.
template <typename T, int kBlocks, class Rows>
void add_products(float* c, const Two& left, Rows right, bool transposed) {
  const int pair = emulated_cuda::lane_index() % 4 * 2;
  for (int j = 0; j < kBlocks; ++j) {
    Two columns;
    if (transposed) {
      for (int side = 0; side < 2; ++side)
        columns[side] = columns_of<T>(right, j * 8 + pair + side);
    } else {
      for (int k = 0; k < 16; ++k) {
        const auto piece = right.piece(k, j);
        for (int side = 0; side < 2; ++side) columns[side][k] = half_of(piece[pair + side], 0, T{});
      }
    }
    for (int i = 0; i < 4; ++i) {
      float& sum = c[j * 4 + i];
      for (int k = 0; k < 16; ++k) sum += left[i / 2][k] * columns[i % 2][k];
    }
  }
}

// The warp's index within its warpgroup.
inline int warp_of_group() {
  return static_cast<int>(threadIdx.x) / 32 % 4;
}

template <bool adds, typename T, int kBlocks, class Rows>
void start_product(float (&c)[kBlocks][4], Rows a, Rows b, T,
                   const Place& place = Place::current()) {
  emulated_cuda::exchange(0xFFFFFFFFu, place, 0);
  emulated_cuda::start_product(&c[0][0], size_t{4} * kBlocks, [a, b](float* result) {
    const int row = warp_of_group() * 16 + emulated_cuda::lane_index() / 4;
    const Two left{columns_of<T>(a, row), columns_of<T>(a, row + 8)};
    if (!adds) std::fill(result, result + 4 * kBlocks, 0.0f);
    add_products<T, kBlocks>(result, left, b, true);
  });
}

template <typename T, int kBlocks>
void start_adding(float (&c)[kBlocks][4], const Quad& a, SwizzledRows<kBlocks * 16> b, T,
                  const Place& place = Place::current()) {
  const auto pair_of = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
  const auto& all = emulated_cuda::exchange(0xFFFFFFFFu, place, pair_of(a.word[0], a.word[1]),
                                            pair_of(a.word[2], a.word[3]));
  const int group = emulated_cuda::lane_index() / 4;
  Two left;
  for (int row = 0; row < 2; ++row) {
    for (int k = 0; k < 16; ++k) {
      const uint32_t word = all.lane[group * 4 + k % 8 / 2].word[row + k / 8 * 2];
      left[row][k] = half_of(word, k % 2, T{});
    }
  }
  emulated_cuda::start_product(&c[0][0], size_t{4} * kBlocks, [left, b](float* result) {
    add_products<T, kBlocks>(result, left, b, false);
  });
}

}  // namespace onebit::kernels::cuda
