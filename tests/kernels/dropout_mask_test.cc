#include "onebit/kernels/dropout_mask.h"

#include <gtest/gtest.h>

namespace onebit::kernels {
namespace {

// The bits that kernels take, eight columns at a time.
TEST(DropoutMask, KeepBitsAreTheRule) {
  for (const uint32_t threshold : {1u, 6554u, 32768u, 65535u}) {
    for (uint32_t column = 0; column < 64; ++column) {
      const uint64_t row_key = 0x9E3779B97F4A7C15ull * (column + 1);
      const uint32_t bits = dropout_keep_bits(dropout_keys(77), 3, row_key, column / 8, threshold);
      EXPECT_EQ((bits >> (column % 8) & 1u) != 0,
                dropout_keeps(dropout_keys(77), 3, row_key, column, threshold));
    }
  }
}

// 10 % of 2^16 lanes are dropped to within five standard deviations, in every lane.
TEST(DropoutMask, DropsTheRequestedShare) {
  const uint32_t threshold = dropout_threshold(0.1f);
  EXPECT_EQ(threshold, 6554u);
  int dropped[8] = {};
  for (uint64_t row = 0; row < 8192; ++row) {
    for (uint32_t lane = 0; lane < 8; ++lane) {
      if (!dropout_keeps(dropout_keys(1), 2, row, lane, threshold)) ++dropped[lane];
    }
  }
  for (const int count : dropped) EXPECT_NEAR(count, 819.2, 5 * 27.2);
}

}  // namespace
}  // namespace onebit::kernels
