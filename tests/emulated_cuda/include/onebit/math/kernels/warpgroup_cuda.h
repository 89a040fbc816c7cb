// Replaces kernels/warpgroup_cuda.h on the emulated device: its folder is searched first.
// Implements the PTX manual's section "wgmma" (m64n32k16, m64n64k16, 16-bit types, 128- and 64-byte
// swizzling). A warp computes its 16 of the 64 rows when its lanes wait for the product.
#pragma once

#include <algorithm>

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

template <typename T, int kRowBytes>
emulated_cuda::SwizzledMatrix matrix_of(SwizzledRows<kRowBytes> rows) {
  return {rows.address, kRowBytes, std::is_same_v<T, __nv_bfloat16>};
}

// The warp's index within its warpgroup.
inline int warp_of_group() {
  return static_cast<int>(threadIdx.x) / 32 % 4;
}

template <bool adds, typename T, int kBlocks, class Rows>
void start_product(float (&c)[kBlocks][4], Rows a, Rows b, T,
                   const Place& place = Place::current()) {
  emulated_cuda::exchange(0xFFFFFFFFu, place, 0);
  const auto left = matrix_of<T>(a), right = matrix_of<T>(b);
  emulated_cuda::start_product(&c[0][0], size_t{4} * kBlocks, [left, right](float* result) {
    const int lane = emulated_cuda::lane_index(), row = warp_of_group() * 16 + lane / 4;
    if (!adds) std::fill(result, result + 4 * kBlocks, 0.0f);
    emulated_cuda::add_product_of_rows(result, kBlocks, lane,
                                       emulated_cuda::read_rows(left, row, row + 8), right);
  });
}

template <typename T, int kBlocks>
void start_adding(float (&c)[kBlocks][4], const Quad& a, SwizzledRows<kBlocks * 16> b, T,
                  const Place& place = Place::current()) {
  const auto pair_of = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
  const auto& all = emulated_cuda::exchange(0xFFFFFFFFu, place, pair_of(a.word[0], a.word[1]),
                                            pair_of(a.word[2], a.word[3]));
  const int group = emulated_cuda::lane_index() / 4;
  emulated_cuda::TwoRows left;
  for (int row = 0; row < 2; ++row) {
    for (int k = 0; k < 16; ++k) {
      const uint32_t word = all.lane[group * 4 + k % 8 / 2].word[row + k / 8 * 2];
      left.row[row][k] = half_of(word, k % 2, T{});
    }
  }
  const auto right = matrix_of<T>(b);
  emulated_cuda::start_product(&c[0][0], size_t{4} * kBlocks, [left, right](float* result) {
    emulated_cuda::add_product_of_columns(result, kBlocks, emulated_cuda::lane_index(), left,
                                          right);
  });
}

}  // namespace onebit::kernels::cuda
