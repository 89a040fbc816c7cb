#include "onebit/math/updates/onebit_adam_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/updates/onebit_adam_update_fixture.h"

namespace onebit::updates {
namespace {

class OnebitNormalizeTest : public OnebitUpdateTest {
 protected:
  // Runs onebit_normalize on the views of `state` and compares everything that it writes with the
  // header's formulas in double precision. Gradients must be finite, and 0 for still elements.
  void normalize_by_the_formula(State& state, const OnebitNormalize& args);

 private:
  struct SubBlockSums {
    double square = 0, variance = 0, signed_sum = 0;
    double whole_square = 0;  // with the squares of spikes that do not count
    // Of |scale * gradient| + |decay * value|, to which rounding is relative.
    double largest_square = 0, largest_sum = 0;
  };
  static bool is_spike(const State& before, const OnebitNormalize& args, int64_t i,
                       double gradient);
  static double cut_spikes(const State& before, const OnebitNormalize& args, int64_t first,
                           const std::vector<double>& gradients, SubBlockSums& sums);
  static double growth_of(const State& before, const OnebitNormalize& args, int64_t first,
                          const SubBlockSums& sums);
  void check_sub_block(const State& before, const State& after, const OnebitNormalize& args,
                       int64_t first, int64_t last, SubBlockSums& sums);
  void check_sent(const State& before, const State& after, const OnebitNormalize& args,
                  int64_t block, const std::vector<SubBlockSums>& sums);
};

bool OnebitNormalizeTest::is_spike(const State& before, const OnebitNormalize& args, int64_t i,
                                   double gradient) {
  if (args.alone) return false;
  const double updates = std::max(100.0, 1 / (1 - args.beta2));
  const double expected =
      double{before.ratio[at(i / kernels::kBlockElements)]} * double{before.variance[at(i)]};
  return gradient * gradient > updates * expected;
}

// Returns how much of the squares of spikes counts: at most a fifth of the variance, or all if they
// are growth.
double OnebitNormalizeTest::cut_spikes(const State& before, const OnebitNormalize& args,
                                       int64_t first, const std::vector<double>& gradients,
                                       SubBlockSums& sums) {
  double square = 0, signed_sum = 0;
  int64_t spikes = 0, moving = 0;
  for (size_t j = 0; j < gradients.size(); ++j) {
    const int64_t i = first + static_cast<int64_t>(j);
    moving += before.variance[at(i)] > 0 ? 1 : 0;
    if (!is_spike(before, args, i, gradients[j])) continue;
    const uint32_t signs =
        noise_signs(args.sketch_key, static_cast<uint64_t>((i + args.sketch_shift) / 32));
    ++spikes;
    square += gradients[j] * gradients[j];
    signed_sum += (signs >> (i % 32) & 1) != 0 ? -gradients[j] : gradients[j];
  }
  if (spikes == 0 || 2 * spikes > moving) return 1;
  const double ratio = before.ratio[at(first / kernels::kBlockElements)];
  const double counted = std::min(1.0, 0.2 * ratio * sums.variance / ((1 - args.beta2) * square));
  sums.square -= (1 - counted) * square;
  sums.signed_sum -= (1 - std::sqrt(counted)) * signed_sum;
  return counted;
}

// The factor of the variance in the divisor.
double OnebitNormalizeTest::growth_of(const State& before, const OnebitNormalize& args,
                                      int64_t first, const SubBlockSums& sums) {
  const int64_t index = first / kernels::kSubBlockElements;
  const double ratio = before.ratio[at(first / kernels::kBlockElements)];
  const double energy = before.energy[at(index)] + sums.square / (ratio * sums.variance);
  const auto updates = static_cast<double>(args.energy_updates[at(index % kernels::kSubBlocks)]);
  const double memory = std::pow(args.beta2, updates);
  return std::max(1.0, memory + (1 - memory) * energy / updates - 1);
}

void OnebitNormalizeTest::check_sub_block(const State& before, const State& after,
                                          const OnebitNormalize& args, int64_t first, int64_t last,
                                          SubBlockSums& sums) {
  std::vector<double> gradients, sizes;
  for (int64_t i = first; i < last; ++i) {
    const double scaled = args.gradient_scale * before.gradient[at(i)];
    const double decayed = decay_of(args.ranges, i) * before.value[at(i)];
    const bool moves = before.variance[at(i)] > 0;
    const double g = moves ? scaled + decayed : 0;
    const double size = moves ? std::abs(scaled) + std::abs(decayed) : 0;
    const uint32_t signs =
        noise_signs(args.sketch_key, static_cast<uint64_t>((i + args.sketch_shift) / 32));
    gradients.push_back(g);
    sizes.push_back(size);
    sums.square += g * g;
    sums.variance += before.variance[at(i)];
    sums.signed_sum += (signs >> (i % 32) & 1) != 0 ? -g : g;
    sums.largest_square += size * size;
    sums.largest_sum += size;
  }
  sums.whole_square = sums.square;
  const double counted = args.alone ? 1 : cut_spikes(before, args, first, gradients, sums);
  const double own = args.alone ? 1 - args.beta2
                                : (1 - args.beta2) *
                                      before.own_weight[at(first / kernels::kSubBlockElements)] /
                                      before.ratio[at(first / kernels::kBlockElements)];
  const double shrink = args.alone ? 1 : sums.variance / (sums.variance + own * sums.square);
  for (int64_t i = first; i < last; ++i) {
    const double old = before.variance[at(i)];
    if (old == 0) {
      ASSERT_EQ(after.variance[at(i)], 0) << i;
      ASSERT_EQ(after.normalized[at(i)], 0) << i;
      continue;
    }
    const double g = gradients[at(i - first)], size = sizes[at(i - first)];
    const double kept = args.alone ? args.beta2 : growth_of(before, args, first, sums);
    const double d = std::sqrt(kept * old + own * g * g) + args.epsilon;
    const double share = is_spike(before, args, i, g) ? counted : 1;
    const double v = (args.alone ? args.beta2 : 1) * old + own * share * g * g;
    ASSERT_NEAR(after.normalized[at(i)], g / d, 16 * kRounding * size / d) << i;
    const double rounding = args.alone ? 8 * kRounding : 2 * kSumRounding;
    ASSERT_NEAR(after.variance[at(i)], v * shrink, rounding * (old + own * size * size)) << i;
  }
}

void OnebitNormalizeTest::check_sent(const State& before, const State& after,
                                     const OnebitNormalize& args, int64_t block,
                                     const std::vector<SubBlockSums>& sums) {
  SubBlockSums total;
  double extra = 0, extra_rounding = 0;
  for (int64_t j = 0; j < kernels::kSubBlocks; ++j) {
    const size_t index = at(block * kernels::kSubBlocks + j);
    double energy = before.energy[index], rounding = 0;
    if (at(j) < sums.size()) {
      const SubBlockSums& one = sums[at(j)];
      total.square += one.square;
      total.variance += one.variance;
      total.signed_sum += one.signed_sum;
      total.largest_square += one.largest_square;
      total.largest_sum += one.largest_sum;
      const double unit = before.ratio[at(block)] * one.variance;
      energy += one.square / unit;
      rounding = kRounding * energy + 2 * kSumRounding * one.largest_square / unit;
    }
    if (j == args.turn) {
      const auto updates = static_cast<double>(args.energy_updates[at(j)]);
      extra = energy / updates;
      extra_rounding = rounding / updates + kRounding * extra;
      ASSERT_EQ(after.energy[index], 0) << index;
    } else {
      ASSERT_NEAR(after.energy[index], energy, rounding) << index;
    }
  }
  const double root = std::sqrt(total.variance);
  const double sketch = before.sketch[at(block)] + total.signed_sum / root;
  const double sketch_rounding =
      2 * kRounding * std::abs(sketch) + 2 * kSumRounding * total.largest_sum / root;
  if (args.turn == kernels::kSubBlocks) {
    extra = sketch;
    extra_rounding = sketch_rounding;
    ASSERT_EQ(after.sketch[at(block)], 0) << block;
  } else {
    ASSERT_NEAR(after.sketch[at(block)], sketch, sketch_rounding) << block;
  }
  ASSERT_NEAR(after.extra[at(block)], extra, extra_rounding) << block;
  const double energy = before.block_energy[at(block)] + total.square / total.variance;
  ASSERT_NEAR(after.block_energy[at(block)], energy,
              kRounding * energy + 2 * kSumRounding * total.largest_square / total.variance);
  ASSERT_NEAR(after.block_variance[at(block)], total.variance, kSumRounding * total.variance);
}

void OnebitNormalizeTest::normalize_by_the_formula(State& state, const OnebitNormalize& args) {
  const State before = state;
  normalize(args);
  for (int64_t first = args.begin; first < args.end; first += kernels::kBlockElements) {
    const int64_t block = first / kernels::kBlockElements;
    const int64_t last = std::min(first + kernels::kBlockElements, args.end);
    std::vector<SubBlockSums> sums;
    double square = 0, largest = 0;
    for (int64_t i = first; i < last; i += kernels::kSubBlockElements) {
      const int64_t end = std::min(i + kernels::kSubBlockElements, last);
      ASSERT_NO_FATAL_FAILURE(check_sub_block(before, state, args, i, end, sums.emplace_back()));
      square += sums.back().whole_square;
      largest += sums.back().largest_square;
    }
    ASSERT_NEAR(state.square[at(block)], square, kSumRounding * largest) << block;
    ASSERT_EQ(state.flags[at(block)], 0) << block;
    if (args.alone) continue;
    ASSERT_NO_FATAL_FAILURE(check_sent(before, state, args, block, sums));
  }
  EXPECT_EQ(state.gradient, before.gradient);
  EXPECT_EQ(state.value, before.value);
}

TEST_P(OnebitNormalizeTest, NormalizeAsOneOfSeveralRanks) {
  for (const bool decays : {true, false}) {
    State state;
    uint64_t call = 0;
    // Every turn follows others in which its number grew, so that sums over calls are sent.
    for (const int64_t turn : {0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 8, 0}) {
      SCOPED_TRACE(testing::Message() << "call " << call << ", turn " << turn);
      state.next_gradient(20 + ++call);
      OnebitNormalize args = state.normalize_arguments();
      args.turn = turn;
      args.sketch_key = call;
      args.sketch_shift = call % 2 == 0 ? 0 : 3 * kernels::kBlockElements;
      if (decays) args.ranges = kDecays;
      ASSERT_NO_FATAL_FAILURE(normalize_by_the_formula(state, args));
      // The last block has three sub-blocks.
      const bool exists = turn < 3 || turn == kernels::kSubBlocks;
      EXPECT_EQ(state.extra[2] != 0, exists);
    }
  }
}

// Ten entries of a sub-block, its half and one more, and a single one of a size near the limits.
TEST_P(OnebitNormalizeTest, SpikesByTheFormula) {
  for (const double beta2 : {0.9, 0.999}) {
    for (const float size : {30.0f, 1e3f, 1e6f}) {
      for (const int64_t spikes : {1, 10, 129}) {
        SCOPED_TRACE(testing::Message() << spikes << " spikes of " << size << ", beta2 " << beta2);
        State state, without;
        OnebitNormalize args = state.normalize_arguments(),
                        args_without = without.normalize_arguments();
        args.beta2 = args_without.beta2 = beta2;
        args.energy_updates.fill(1);
        normalize(args_without);
        for (int64_t i = 512; i < 512 + spikes; ++i) {
          if (state.variance[at(i)] > 0) state.gradient[at(i)] = i % 2 == 0 ? size : -size;
        }
        ASSERT_NO_FATAL_FAILURE(normalize_by_the_formula(state, args));
        const double own = (1 - beta2) * state.own_weight[2] / state.ratio[0];
        for (int64_t i = 512; i < 512 + spikes; ++i) {
          EXPECT_LE(std::abs(state.normalized[at(i)]), 1.001 / std::sqrt(own)) << i;
        }
        if (spikes > 10) continue;
        // The entries beside them keep at least 1 / 1.2 of their variance, and so will other ranks.
        for (int64_t i = 512 + spikes; i < 768; ++i) {
          EXPECT_GE(state.variance[at(i)], double{without.variance[at(i)]} / 1.201) << i;
        }
        EXPECT_LE((1 - beta2) * double{state.energy[2]},
                  (1 - beta2) * double{without.energy[2]} + 0.201);
      }
    }
  }
}

TEST_P(OnebitNormalizeTest, SendsTheSumSinceItsLastTurn) {
  State state;
  OnebitNormalize args = state.normalize_arguments();
  args.own_weight = view_of(state.own_weight);
  std::fill(state.own_weight.begin(), state.own_weight.end(), 0.0f);
  args.turn = 7;
  normalize(args);
  const State once = state;
  args.turn = 1;
  normalize(args);
  for (size_t block = 0; block < kBlocks; ++block) {
    // The same gradients and variance twice, so twice the same numbers.
    EXPECT_GT(once.energy[8 * block], 0);
    EXPECT_EQ(state.energy[8 * block], 2 * once.energy[8 * block]);
    EXPECT_EQ(state.block_energy[block], 2 * once.block_energy[block]);
    EXPECT_EQ(state.block_variance[block], once.block_variance[block]);
    EXPECT_EQ(state.sketch[block], 2 * once.sketch[block]);
    const double updates = static_cast<double>(args.energy_updates[1]);
    EXPECT_EQ(state.extra[block],
              static_cast<float>(1 / updates * (2 * once.energy[8 * block + 1])));
    EXPECT_EQ(state.energy[8 * block + 1], 0);
  }
}

TEST_P(OnebitNormalizeTest, TheVarianceOfASubBlockKeepsItsSum) {
  State state;
  const State before = state;
  normalize(state.normalize_arguments());
  for (int64_t first = 0; first < kElements; first += kernels::kSubBlockElements) {
    const int64_t last = std::min(first + kernels::kSubBlockElements, kElements);
    const double sum = sum_of(before.variance, first, last);
    EXPECT_NEAR(sum_of(state.variance, first, last), sum, 2 * kSumRounding * sum) << first;
    EXPECT_FALSE(std::equal(state.variance.begin() + first, state.variance.begin() + last,
                            before.variance.begin() + first))
        << first;
  }
}

TEST_P(OnebitNormalizeTest, OwnWeight) {
  State state;
  for (size_t i = 0; i < state.own_weight.size(); ++i) {
    state.own_weight[i] = i % 3 == 0 ? 1.0f : i % 3 == 1 ? 0.125f : 0.0f;
  }
  const State before = state;
  ASSERT_NO_FATAL_FAILURE(normalize_by_the_formula(state, state.normalize_arguments()));
  for (size_t i = 0; i < state.variance.size(); ++i) {
    if (state.own_weight[i / kernels::kSubBlockElements] != 0) continue;
    ASSERT_EQ(state.variance[i], before.variance[i]) << i;
  }
}

TEST_P(OnebitNormalizeTest, DecayOfTheGradientAlone) {
  State state;
  std::fill(state.gradient.begin(), state.gradient.end(), 0.0f);
  OnebitNormalize args = state.normalize_arguments();
  args.ranges = kDecays;
  ASSERT_NO_FATAL_FAILURE(normalize_by_the_formula(state, args));
  for (size_t i = 0; i < state.normalized.size(); ++i) {
    const bool moves = !stands_still(i) && decay_of(kDecays, static_cast<int64_t>(i)) != 0;
    ASSERT_EQ(state.normalized[i] != 0, moves) << i;
  }
}

TEST_P(OnebitNormalizeTest, OnlyTheBlocksOfTheRange) {
  State state;
  const State before = state;
  OnebitNormalize args =
      state.normalize_arguments(kernels::kBlockElements, 2 * kernels::kBlockElements);
  args.turn = 3;
  args.ranges = kDecays;
  ASSERT_NO_FATAL_FAILURE(normalize_by_the_formula(state, args));
  for (size_t i = 0; i < state.variance.size(); ++i) {
    if (i / kernels::kBlockElements == 1) continue;
    ASSERT_EQ(state.variance[i], before.variance[i]) << i;
    ASSERT_EQ(state.normalized[i], kUntouched) << i;
  }
  for (const size_t block : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(state.extra[block], kUntouched);
    EXPECT_EQ(state.sketch[block], 0);
    EXPECT_EQ(state.block_energy[block], 0);
    EXPECT_EQ(state.block_variance[block], kUntouched);
    EXPECT_EQ(state.square[block], kUntouched);
    EXPECT_EQ(state.flags[block], 0xFF);
    for (size_t j = 0; j < 8; ++j) EXPECT_EQ(state.energy[8 * block + j], 0);
  }
  // Two ranges are the whole buffer.
  State parts, whole;
  normalize(parts.normalize_arguments(kernels::kBlockElements, kElements));
  normalize(parts.normalize_arguments(0, kernels::kBlockElements));
  normalize(whole.normalize_arguments());
  EXPECT_EQ(parts.variance, whole.variance);
  EXPECT_EQ(parts.normalized, whole.normalized);
  EXPECT_EQ(parts.energy, whole.energy);
  EXPECT_EQ(parts.sketch, whole.sketch);
  EXPECT_EQ(parts.extra, whole.extra);
  // An empty range changes nothing.
  normalize(whole.normalize_arguments(kernels::kBlockElements, kernels::kBlockElements));
  EXPECT_EQ(parts.variance, whole.variance);
}

TEST_P(OnebitNormalizeTest, AloneIsAdam) {
  for (const bool decays : {true, false}) {
    State state;
    OnebitNormalize args = state.alone_arguments();
    if (decays) args.ranges = kDecays;
    ASSERT_NO_FATAL_FAILURE(normalize_by_the_formula(state, args));
  }
}

TEST(OnebitNormalize, ThreadsChangeNothing) {
  State one, three;
  Context single = Context::cpu(1), several = Context::cpu(3);
  onebit_normalize(single, one.normalize_arguments());
  onebit_normalize(several, three.normalize_arguments());
  EXPECT_EQ(one.variance, three.variance);
  EXPECT_EQ(one.normalized, three.normalized);
  EXPECT_EQ(one.energy, three.energy);
  EXPECT_EQ(one.sketch, three.sketch);
}

ONEBIT_ON_EVERY_DEVICE(OnebitNormalizeTest);

}  // namespace
}  // namespace onebit::updates
