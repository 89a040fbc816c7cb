#include "onebit/math/updates/onebit_adam_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/updates/onebit_adam_update_fixture.h"

namespace onebit::updates {
namespace {

class OnebitNormalizeEdgesTest : public OnebitUpdateTest {};

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A sub-block in which all elements are still: there is no variance to divide by.
TEST_P(OnebitNormalizeEdgesTest, NothingOfASubBlockMoves) {
  State state;
  for (size_t i = 256; i < 512; ++i) state.gradient[i] = state.variance[i] = 0;
  for (size_t i = 2048; i < 4096; ++i) state.gradient[i] = state.variance[i] = 0;
  OnebitNormalize args = state.normalize_arguments();
  args.turn = 1;
  args.ranges = kDecays;
  normalize(args);
  for (const size_t sub_block : {1, 8, 9, 15}) EXPECT_EQ(state.energy[sub_block], 0);
  for (size_t i = 256; i < 512; ++i) ASSERT_EQ(state.normalized[i], 0) << i;
  for (size_t i = 2048; i < 4096; ++i) ASSERT_EQ(state.normalized[i], 0) << i;
  EXPECT_EQ(state.flags, (std::vector<uint8_t>{0, 0, 0}));
  EXPECT_EQ(state.extra[0], 0);
  EXPECT_EQ(state.extra[1], 0);
  EXPECT_GT(state.extra[2], 0);
  EXPECT_EQ(state.sketch[1], 0);
  EXPECT_EQ(state.block_energy[1], 0);
  EXPECT_EQ(state.block_variance[1], 0);
  EXPECT_GT(state.block_energy[0], 0);
}

TEST_P(OnebitNormalizeEdgesTest, StillEntriesWithGradientsAreReported) {
  for (const bool alone : {false, true}) {
    State state;
    constexpr size_t kStill = 600 * 7 + 3;
    ASSERT_TRUE(stands_still(kStill));
    State without;
    normalize(alone ? without.alone_arguments() : without.normalize_arguments());
    state.gradient[kStill] = 1e-30f;
    normalize(alone ? state.alone_arguments() : state.normalize_arguments());
    EXPECT_EQ(state.flags, (std::vector<uint8_t>{0, 0, kBlockStillMoved}));
    // Their gradients accumulate until the element wakes, and are not counted before.
    EXPECT_EQ(state.normalized, without.normalized);
    EXPECT_EQ(state.variance, without.variance);
    EXPECT_EQ(state.square, without.square);
    EXPECT_EQ(state.energy, without.energy);
  }
}

TEST_P(OnebitNormalizeEdgesTest, NotFiniteTakesTheBlocksGradientAsZero) {
  // The last two are finite, but their squares, or the sums with the variance, are not.
  for (const float bad : {kInfinite, -kInfinite, kNaN, 1e20f, 1e13f}) {
    for (const size_t where : {size_t{2500}, size_t{2502}}) {  // a moving entry, a still one
      for (const int64_t turn : {1, 2, 8}) {
        SCOPED_TRACE(testing::Message() << bad << " at " << where << ", turn " << turn);
        ASSERT_EQ(stands_still(where), where == 2502);
        State state, finite;
        if (bad == 1e13f) {
          if (stands_still(where)) continue;
          for (size_t i = 2304; i < 2560; ++i)
            state.variance[i] = std::min(state.variance[i], 1e-9f);
        }
        for (State* one : {&state, &finite}) {
          std::fill(one->energy.begin(), one->energy.end(), 2.0f);
          std::fill(one->sketch.begin(), one->sketch.end(), -3.0f);
          std::fill(one->block_energy.begin(), one->block_energy.end(), 4.0f);
        }
        state.gradient[where] = bad;
        const State before = state;
        OnebitNormalize args = state.normalize_arguments();
        args.turn = turn;
        normalize(args);
        OnebitNormalize others = finite.normalize_arguments();
        others.turn = turn;
        normalize(others);

        EXPECT_EQ(state.flags, (std::vector<uint8_t>{0, kBlockNotFinite, 0}));
        EXPECT_EQ(state.square[1], 0);
        EXPECT_EQ(state.block_energy[1], 4);
        for (size_t i = 2048; i < 4096; ++i) {
          ASSERT_EQ(state.normalized[i], 0) << i;
          ASSERT_EQ(state.variance[i], before.variance[i]) << i;
        }
        // The sums of earlier updates are sent in their turn.
        const double updates = turn == 8 ? 1 : static_cast<double>(args.energy_updates[at(turn)]);
        EXPECT_EQ(state.extra[1], turn == 8 ? -3.0f : static_cast<float>(1 / updates * 2));
        EXPECT_EQ(state.sketch[1], turn == 8 ? 0 : -3);
        for (int64_t j = 0; j < kernels::kSubBlocks; ++j) {
          EXPECT_EQ(state.energy[at(kernels::kSubBlocks + j)], j == turn ? 0 : 2) << j;
        }
        const double variance = sum_of(before.variance, 2048, 4096);
        EXPECT_NEAR(state.block_variance[1], variance, kSumRounding * variance);
        // The neighbouring blocks do not change.
        for (const size_t block : {size_t{0}, size_t{2}}) {
          EXPECT_EQ(state.square[block], finite.square[block]);
          EXPECT_EQ(state.extra[block], finite.extra[block]);
          EXPECT_EQ(state.sketch[block], finite.sketch[block]);
          EXPECT_EQ(state.block_energy[block], finite.block_energy[block]);
        }
        for (size_t i = 0; i < state.variance.size(); ++i) {
          if (i / kernels::kBlockElements == 1) continue;
          ASSERT_EQ(state.variance[i], finite.variance[i]) << i;
          ASSERT_EQ(state.normalized[i], finite.normalized[i]) << i;
        }
      }
    }
  }
}

TEST_P(OnebitNormalizeEdgesTest, NotFiniteAlone) {
  for (const float bad : {kInfinite, kNaN, 1e20f}) {
    for (const size_t where : {size_t{2500}, size_t{2502}}) {
      State state;
      state.gradient[where] = bad;
      const State before = state;
      normalize(state.alone_arguments());
      EXPECT_EQ(state.flags, (std::vector<uint8_t>{0, kBlockNotFinite, 0}));
      EXPECT_EQ(state.square[1], 0);
      for (size_t i = 2048; i < 4096; ++i) {
        ASSERT_EQ(state.normalized[i], 0) << i;
        ASSERT_EQ(state.variance[i], before.variance[i]) << i;
      }
      EXPECT_NE(state.variance[0], before.variance[0]);
    }
  }
}

// The variance is near zero, and large gradients have no weight in it. Sums must remain finite,
// because their running means would never recover.
TEST_P(OnebitNormalizeEdgesTest, TheNumbersThatAreSentStayFinite) {
  State state;
  std::fill(state.own_weight.begin(), state.own_weight.end(), 0.0f);
  for (size_t i = 0; i < state.variance.size(); ++i) {
    state.variance[i] = stands_still(i) ? 0 : kSmallestVariance;
    state.gradient[i] = stands_still(i) ? 0 : 1e14f;
  }
  OnebitNormalize args = state.normalize_arguments();
  for (const int64_t turn : {8, 1}) {
    args.turn = turn;
    normalize(args);
    EXPECT_EQ(state.flags, (std::vector<uint8_t>{0, 0, 0}));
    for (const Values* values : {&state.energy, &state.sketch, &state.block_energy, &state.extra}) {
      for (const float one : *values) {
        EXPECT_LE(std::abs(one), 4 * kLargestFinite);
      }
    }
    for (const float one : state.extra) EXPECT_LE(std::abs(one), float{kLargestFinite});
  }
}

// Without gradients a variance decreases, but not to the value that marks still elements.
TEST_P(OnebitNormalizeEdgesTest, AloneTheVarianceStaysAboveZero) {
  State state;
  std::fill(state.gradient.begin(), state.gradient.end(), 0.0f);
  for (size_t i = 0; i < state.variance.size(); ++i) {
    if (!stands_still(i)) state.variance[i] = kSmallestVariance;
  }
  const Values before = state.variance;
  normalize(state.alone_arguments());
  EXPECT_EQ(state.variance, before);
}

ONEBIT_ON_EVERY_DEVICE(OnebitNormalizeEdgesTest);

}  // namespace
}  // namespace onebit::updates
