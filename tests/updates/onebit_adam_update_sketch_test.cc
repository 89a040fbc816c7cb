#include "onebit/math/updates/onebit_adam_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/updates/onebit_adam_update_fixture.h"

namespace onebit::updates {
namespace {

class OnebitSketchTest : public OnebitUpdateTest {};

constexpr int kDraws = 4000;

// Sums of 4000 signs, and of products of two signs, have the size of sqrt(4000). The largest of
// some 8000 such sums is about 4 times that.
void expect_independent(const std::function<uint32_t(uint64_t draw, uint64_t word)>& signs_of) {
  constexpr uint64_t kWords = 4;
  std::vector<std::vector<int>> signs(32 * kWords, std::vector<int>(kDraws));
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    for (uint64_t i = 0; i < signs.size(); ++i) {
      signs[i][draw] = (signs_of(draw, i / 32) >> (i % 32) & 1) != 0 ? -1 : 1;
    }
  }
  const double largest = 5.5 * std::sqrt(static_cast<double>(kDraws));
  for (size_t i = 0; i < signs.size(); ++i) {
    int sum = 0;
    for (const int sign : signs[i]) sum += sign;
    EXPECT_LT(std::abs(sum), largest) << i;
    for (size_t j = 0; j < i; ++j) {
      int product = 0;
      for (size_t draw = 0; draw < kDraws; ++draw) product += signs[i][draw] * signs[j][draw];
      EXPECT_LT(std::abs(product), largest) << i << " and " << j;
    }
  }
}

TEST(NoiseSigns, BalancedAndIndependentOverKeys) {
  const uint64_t groups[] = {0, 1, 64, 10'000'019};
  expect_independent(
      [&](uint64_t draw, uint64_t word) { return noise_signs(draw + 1, groups[word]); });
}

TEST(NoiseSigns, BalancedAndIndependentOverGroups) {
  const uint64_t keys[] = {1, 2, 3, 500'000};
  expect_independent([&](uint64_t draw, uint64_t word) { return noise_signs(keys[word], draw); });
  // Consecutive words of the buffer are independent, too.
  expect_independent([&](uint64_t draw, uint64_t word) { return noise_signs(7, 4 * draw + word); });
}

// The reason to send the sketch: <signs, g> is linear in g, and its square has the expectation
// |g|^2.
TEST_P(OnebitSketchTest, TheSquaredSketchIsTheSquareOfTheGradient) {
  State state;
  std::fill(state.own_weight.begin(), state.own_weight.end(), 0.0f);
  OnebitNormalize args = state.normalize_arguments();
  args.turn = kernels::kSubBlocks;
  std::vector<double> sums(kBlocks);
  for (int key = 1; key <= kDraws; ++key) {
    args.sketch_key = static_cast<uint64_t>(key);
    normalize(args);
    for (size_t block = 0; block < kBlocks; ++block) {
      sums[block] += double{state.extra[block]} * state.extra[block];
    }
  }
  for (size_t block = 0; block < kBlocks; ++block) {
    const double expected = state.square[block] / state.block_variance[block];
    // The mean of 4000 squares has a standard deviation of 2.2 %.
    EXPECT_NEAR(sums[block] / kDraws, expected, 0.1 * expected) << block;
  }
}

ONEBIT_ON_EVERY_DEVICE(OnebitSketchTest);

}  // namespace
}  // namespace onebit::updates
