#include "onebit/math/kernels/dropout_mask.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace onebit::kernels {
namespace {

// The bits that kernels take, 16 and 32 columns at a time.
TEST(DropoutMask, KeepBitsAreTheRule) {
  const DropoutKeys keys = dropout_keys(77);
  for (const uint32_t threshold : {1u, 255u, 256u, 6554u, 32768u, 65535u}) {
    const DropoutComparison comparison = dropout_comparison(threshold);
    for (uint32_t column = 0; column < 64; ++column) {
      const uint64_t row_key = 0x9E3779B97F4A7C15ull * (column / 32 + 1);
      const bool kept = dropout_keeps(keys, 3, row_key, column, threshold);
      const uint32_t of_16 = dropout_kept_16(keys, 3, row_key, column / 16, comparison);
      EXPECT_EQ((of_16 >> (column % 16) & 1u) != 0, kept);
      const uint32_t of_32 = dropout_kept_32(keys, 3, row_key, column / 32 * 2, comparison);
      EXPECT_EQ((of_32 >> (column % 32) & 1u) != 0, kept);
    }
  }
}

// A number is at its own value, and below the next: all 16 bits count. Every lane has one byte, so
// that its partner has the same.
TEST(DropoutMask, ComparesAllBits) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    DropoutLanes lanes;
    uint32_t reversed = 0;
    for (int bit = 0; bit < 8; ++bit) {
      lanes.own[bit] = lanes.partners[bit] = 0u - (byte >> bit & 1u);
      reversed |= (byte >> bit & 1u) << (7 - bit);
    }
    const uint32_t value = byte << 8 | reversed;
    EXPECT_EQ(kept_lanes(lanes, dropout_comparison(value)), ~0u) << value;
    if (value < 65535) {
      EXPECT_EQ(kept_lanes(lanes, dropout_comparison(value + 1)), 0u) << value;
    }
  }
}

// 20 % of the rows are dropped to within five standard deviations, in every lane, and 4 % in both
// of two partners, which share bits: 4.12 % if those were not reversed, which is too many.
TEST(DropoutMask, DropsTheRequestedShare) {
  EXPECT_EQ(dropout_threshold(0.1f), 6554u);
  const uint32_t threshold = dropout_threshold(0.2f);
  constexpr int kRows = 1 << 17;
  const DropoutKeys keys = dropout_keys(1);
  const DropoutComparison comparison = dropout_comparison(threshold);
  int dropped[16] = {}, pairs = 0;
  for (uint64_t row = 0; row < kRows; ++row) {
    const uint32_t gone = ~dropout_kept_16(keys, 2, row, 0, comparison) & 0xFFFFu;
    for (uint32_t lane = 0; lane < 16; ++lane) dropped[lane] += static_cast<int>(gone >> lane & 1u);
    pairs += std::popcount(gone & gone >> 8);
  }
  for (const int count : dropped) EXPECT_NEAR(count, 0.2 * kRows, 5 * std::sqrt(0.16 * kRows));
  EXPECT_NEAR(pairs, 0.04 * 8 * kRows, 5 * std::sqrt(0.0384 * 8 * kRows));
}

}  // namespace
}  // namespace onebit::kernels
