#include "onebit/math/updates/onebit_adam_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/updates/onebit_adam_update_fixture.h"

namespace onebit::updates {
namespace {

class OnebitMomentumTest : public OnebitUpdateTest {};

TEST_P(OnebitMomentumTest, Momentum) {
  for (const int64_t turn : {0, 1, 2, 5, 8}) {
    State state;
    state.normalized = random_values(9, 2);
    state.extra = {0.5f, 0, 30};
    const State before = state;
    OnebitMomentum args = state.momentum_arguments();
    args.beta1 = 0.8;
    args.turn_memory = 0.7;
    args.turn = turn;
    momentum(args);
    for (size_t i = 0; i < state.momentum.size(); ++i) {
      const double m = 0.8 * before.momentum[i], y = 0.2 * before.normalized[i];
      ASSERT_NEAR(state.momentum[i], m + y, 4 * kRounding * (std::abs(m) + std::abs(y))) << i;
      const size_t block = i / kernels::kBlockElements;
      const bool grows =
          static_cast<int64_t>(i % kernels::kBlockElements) / kernels::kSubBlockElements == turn;
      if (!grows || stands_still(i)) {
        ASSERT_EQ(state.variance[i], before.variance[i]) << i;
      } else {
        const double v = before.variance[i] * (0.7 + 0.3 * before.extra[block]);
        ASSERT_NEAR(state.variance[i], v, 4 * kRounding * v) << i;
      }
    }
    EXPECT_EQ(state.normalized, before.normalized);
    EXPECT_EQ(state.extra, before.extra);
  }
}

TEST_P(OnebitMomentumTest, MomentumWithoutEnergyLeavesTheVariance) {
  State state;
  state.normalized = random_values(9, 2);
  const State before = state;
  OnebitMomentum args = state.momentum_arguments();
  args.extra = ConstView();
  args.turn_memory = 0.7;
  momentum(args);
  EXPECT_EQ(state.variance, before.variance);
  EXPECT_NE(state.momentum, before.momentum);
}

TEST_P(OnebitMomentumTest, MomentumOnlyOfTheBlocksOfTheRange) {
  State state, whole;
  whole.normalized = state.normalized = random_values(9, 2);
  whole.extra = state.extra = {2, 3, 4};
  const State before = state;
  const auto arguments = [](State& of) {
    OnebitMomentum args = of.momentum_arguments();
    args.turn = 1;
    args.turn_memory = 0.5;
    return args;
  };
  OnebitMomentum args = arguments(state);
  args.begin = kernels::kBlockElements;
  args.end = 2 * kernels::kBlockElements;
  args.normalized = part_of(state.normalized, args.begin, args.end);
  args.extra = part_of(state.extra, 1, 2);
  momentum(args);
  momentum(arguments(whole));
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    const State& expected = i / kernels::kBlockElements == 1 ? whole : before;
    ASSERT_EQ(state.momentum[i], expected.momentum[i]) << i;
    ASSERT_EQ(state.variance[i], expected.variance[i]) << i;
  }
}

// Nine tenths of the smallest denormal numbers round to themselves, so they must be cleared.
TEST_P(OnebitMomentumTest, AMomentumWithoutGradientsEndsAtZero) {
  State state;
  std::fill(state.normalized.begin(), state.normalized.end(), 0.0f);
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    const float size = i % 3 == 0 ? 4e-45f : i % 3 == 1 ? 1.2e-38f : 1e-37f;
    state.momentum[i] = i % 2 == 0 ? size : -size;
  }
  OnebitMomentum args = state.momentum_arguments();
  args.extra = ConstView();
  momentum(args);
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    const float expected = i % 3 != 2 ? 0.0f : i % 2 == 0 ? 0.9f * 1e-37f : -0.9f * 1e-37f;
    ASSERT_EQ(state.momentum[i], expected) << i;
  }
}

TEST_P(OnebitMomentumTest, AVarianceThatMovesStaysANumberAboveZero) {
  State state;
  std::fill(state.normalized.begin(), state.normalized.end(), 0.0f);
  for (size_t i = 0; i < 256; ++i) {
    if (!stands_still(i)) state.variance[i] = kSmallestVariance;
  }
  for (size_t i = 2048; i < 2304; ++i) {
    if (!stands_still(i)) state.variance[i] = 1e20f;
  }
  state.extra = {0, 1e30f, 1};
  OnebitMomentum args = state.momentum_arguments();
  args.turn_memory = 0.5;
  momentum(args);
  for (size_t i = 0; i < 256; ++i) {
    ASSERT_EQ(state.variance[i], stands_still(i) ? 0 : kSmallestVariance) << i;
    ASSERT_EQ(state.variance[2048 + i],
              stands_still(2048 + i) ? 0 : static_cast<float>(kLargestFinite))
        << i;
  }
}

ONEBIT_ON_EVERY_DEVICE(OnebitMomentumTest);

}  // namespace
}  // namespace onebit::updates
