#include "onebit/ops/onebit_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "onebit/base/philox.h"
#include "tests/ops/mirror.h"

namespace onebit::ops {
namespace {

using Values = std::vector<float>;

// Three blocks, the last one partial.
constexpr int64_t kElements = 2 * kUpdateBlockElements + 528;
constexpr int64_t kBlocks = 3;

Values random_values(uint64_t stream, double scale) {
  RandomSequence random(6, stream, 0);
  Values values(kElements);
  for (float& one : values) one = static_cast<float>(scale * (2 * random.uniform() - 1));
  return values;
}

View view_of(Values& values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

bool stands_still(size_t i) {
  return i % 7 == 3 || (i >= 100 && i < 140);
}

bool bit_of(const std::vector<uint8_t>& bitmap, size_t i) {
  return (bitmap[i / 8] >> (i % 8) & 1) != 0;
}

struct State {
  Values value = random_values(1, 2), gradient = random_values(2, 1);
  Values momentum = random_values(3, 0.1), inverse = random_values(4, 5);
  Values energy = Values(kBlocks), factor = {0.5f, 2, 1}, ratio = {1, 1.5f, 4};
  std::vector<double> square = std::vector<double>(kBlocks);
  std::vector<uint8_t> flags = std::vector<uint8_t>(kBlocks), still;

  State() : still(kElements / 8) {
    for (size_t i = 0; i < inverse.size(); ++i) {
      inverse[i] = stands_still(i) ? 0 : std::abs(inverse[i]) + 0.5f;
      if (!stands_still(i)) continue;
      gradient[i] = momentum[i] = 0;
      still[i / 8] = static_cast<uint8_t>(still[i / 8] | (1u << (i % 8)));
    }
  }
  OnebitMomentum momentum_arguments() {
    return {.momentum = view_of(momentum),
            .inverse = view_of(inverse),
            .gradient = view_of(gradient),
            .value = view_of(value),
            .block_energy = view_of(energy),
            .block_square = View::of(square.data(), {kBlocks}),
            .block_flags = View::of(flags.data(), {kBlocks}),
            .begin = 0,
            .end = kElements,
            .gradient_scale = 0.25};
  }
};

class OnebitUpdateTest : public MirrorTest {
 protected:
  void freeze(OnebitFreeze a) {
    Mirror mirror(context());
    a.momentum = mirror(a.momentum);
    a.variance = mirror(a.variance);
    a.still = mirror(a.still);
    onebit_freeze(context(), a);
    mirror.bring_back();
  }
  void energy(OnebitEnergy a) {
    Mirror mirror(context());
    a.gradient = mirror(a.gradient);
    a.variance = mirror(a.variance);
    a.block_energy = mirror(a.block_energy);
    onebit_energy(context(), a);
    mirror.bring_back();
  }
  void momentum(OnebitMomentum a) {
    Mirror mirror(context());
    a.momentum = mirror(a.momentum);
    a.inverse = mirror(a.inverse);
    a.gradient = mirror(a.gradient);
    a.value = mirror(a.value);
    a.block_ratio = mirror(a.block_ratio);
    a.block_energy = mirror(a.block_energy);
    a.block_square = mirror(a.block_square);
    a.block_flags = mirror(a.block_flags);
    onebit_momentum(context(), a);
    mirror.bring_back();
  }
  void step(OnebitStep a) {
    Mirror mirror(context());
    a.value = mirror(a.value);
    a.compute_value = mirror(a.compute_value);
    a.momentum = mirror(a.momentum);
    a.inverse = mirror(a.inverse);
    a.still = mirror(a.still);
    a.block_factor = mirror(a.block_factor);
    onebit_step(context(), a);
    mirror.bring_back();
  }
};

TEST_P(OnebitUpdateTest, Freeze) {
  for (const bool preconditioned : {true, false}) {
    Values momenta = random_values(1, 1), variance = random_values(2, 1);
    for (size_t i = 0; i < variance.size(); ++i) {
      variance[i] = stands_still(i) ? 0 : variance[i] * variance[i] + 1e-12f;
    }
    const Values m = momenta, v = variance;
    std::vector<uint8_t> still(kElements / 8, 0xFF);
    freeze({.momentum = view_of(momenta),
            .variance = view_of(variance),
            .still = View::of(still.data(), {kElements / 8}),
            .epsilon = 1e-6,
            .variance_factor = 4,
            .preconditioned = preconditioned});
    for (size_t i = 0; i < m.size(); ++i) {
      ASSERT_EQ(bit_of(still, i), stands_still(i)) << i;
      const double inverse = stands_still(i) ? 0 : 1 / (std::sqrt(4.0 * v[i]) + 1e-6);
      const double x = stands_still(i) ? 0 : m[i] * (preconditioned ? inverse : 1);
      ASSERT_NEAR(variance[i], inverse, 4 * 0x1p-24 * inverse) << i;
      ASSERT_NEAR(momenta[i], x, 4 * 0x1p-24 * std::abs(x)) << i;
    }
  }
}

TEST_P(OnebitUpdateTest, EnergyOfTheEntriesThatMove) {
  Values gradient = random_values(1, 1), variance = random_values(2, 1), energies(kBlocks);
  for (size_t i = 0; i < variance.size(); ++i) {
    variance[i] = stands_still(i) ? 0 : variance[i] * variance[i] + 0.01f;
  }
  OnebitEnergy args{.gradient = view_of(gradient),
                    .variance = view_of(variance),
                    .block_energy = view_of(energies),
                    .begin = kUpdateBlockElements,
                    .end = kElements,
                    .variance_factor = 2};
  energy(args);
  EXPECT_EQ(energies[0], 0);
  args.begin = 0;
  args.end = kUpdateBlockElements;
  energy(args);
  for (int64_t block = 0; block < kBlocks; ++block) {
    double sum = 0;
    int64_t live = 0;
    for (int64_t i = block * kUpdateBlockElements;
         i < std::min((block + 1) * kUpdateBlockElements, kElements); ++i) {
      const auto at = static_cast<size_t>(i);
      if (stands_still(at)) continue;
      sum += std::pow(gradient[at] / (std::sqrt(2.0 * variance[at]) + 1e-8), 2);
      ++live;
    }
    const double expected = sum / static_cast<double>(live);
    // Lanes add up at most 2048 / 4 terms each.
    EXPECT_NEAR(energies[static_cast<size_t>(block)], expected, 520 * 0x1p-24 * expected);
  }
}

TEST_P(OnebitUpdateTest, Momentum) {
  const std::vector<UpdateRange> ranges{{0, 2064, 0.1}, {2064, kElements, 0}};
  for (const bool preconditioned : {true, false}) {
    for (const bool decays : {true, false}) {
      State state;
      const State before = state;
      OnebitMomentum args = state.momentum_arguments();
      args.preconditioned = preconditioned;
      if (decays) args.ranges = ranges;
      momentum(args);
      std::vector<double> energies(kBlocks), square(kBlocks), live(kBlocks);
      for (size_t i = 0; i < state.momentum.size(); ++i) {
        const double decay = decays && i < 2064 ? 0.1 : 0;
        const double g = 0.25 * before.gradient[i] + decay * before.value[i];
        const double ratio = g * before.inverse[i];
        const double x = 0.9 * before.momentum[i] + 0.1 * (preconditioned ? ratio : g);
        ASSERT_NEAR(state.momentum[i], stands_still(i) ? 0 : x, 8 * 0x1p-24) << i;
        const size_t block = i / kUpdateBlockElements;
        square[block] += g * g;
        energies[block] += ratio * ratio;
        live[block] += stands_still(i) ? 0 : 1;
      }
      for (size_t block = 0; block < kBlocks; ++block) {
        EXPECT_NEAR(state.square[block], square[block], 520 * 0x1p-24 * square[block]);
        const double mean = energies[block] / live[block];
        EXPECT_NEAR(state.energy[block], mean, 520 * 0x1p-24 * mean);
        EXPECT_EQ(state.flags[block], 0);
      }
    }
  }
}

TEST_P(OnebitUpdateTest, WithoutTheEnergyAllElseIsTheSame) {
  for (const bool moving : {true, false}) {
    State with, without;
    with.gradient[2500] = without.gradient[2500] = std::numeric_limits<float>::infinity();
    OnebitMomentum args = with.momentum_arguments(), bare = without.momentum_arguments();
    if (moving) args.block_ratio = view_of(with.ratio);
    if (moving) bare.block_ratio = view_of(without.ratio);
    bare.block_energy = View();
    momentum(args);
    momentum(bare);
    EXPECT_GT(with.energy[0], 0);
    EXPECT_EQ(without.energy, Values(kBlocks));
    EXPECT_EQ(without.momentum, with.momentum);
    EXPECT_EQ(without.inverse, with.inverse);
    EXPECT_EQ(without.square, with.square);
    EXPECT_EQ(without.flags, with.flags);
  }
}

TEST_P(OnebitUpdateTest, MomentumWithADivisorThatGoesOn) {
  const std::vector<UpdateRange> ranges{{0, 2064, 0.1}, {2064, kElements, 0}};
  for (const bool decays : {true, false}) {
    State state;
    const State before = state;
    OnebitMomentum args = state.momentum_arguments();
    args.block_ratio = view_of(state.ratio);
    args.beta2 = 0.9;
    args.epsilon = 0.2;  // reached by some
    if (decays) args.ranges = ranges;
    momentum(args);
    int at_least = 0;
    for (size_t i = 0; i < state.momentum.size(); ++i) {
      if (stands_still(i)) {
        ASSERT_EQ(state.inverse[i], 0) << i;
        ASSERT_EQ(state.momentum[i], 0) << i;
        continue;
      }
      const double decay = decays && i < 2064 ? 0.1 : 0;
      const double g = 0.25 * before.gradient[i] + decay * before.value[i];
      const double d = 1 / double{before.inverse[i]};
      const double ratio = before.ratio[i / kUpdateBlockElements];
      const double next = std::max(std::sqrt(0.9 * d * d + (1 - 0.9) * g * g / ratio), 0.2);
      at_least += next == 0.2 ? 1 : 0;
      ASSERT_NEAR(state.inverse[i], 1 / next, 8 * 0x1p-24 / next) << i;
      ASSERT_NEAR(state.momentum[i], 0.9 * before.momentum[i] + 0.1 * g / next, 8 * 0x1p-24) << i;
    }
    EXPECT_GT(at_least, 0);
  }
}

TEST_P(OnebitUpdateTest, NotFiniteLeavesTheDivisor) {
  // The last is finite, but its square is not, and d would be infinite for ever.
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 1e25f}) {
    State state;
    state.gradient[2500] = bad;
    const State before = state;
    OnebitMomentum args = state.momentum_arguments();
    args.block_ratio = view_of(state.ratio);
    momentum(args);
    EXPECT_EQ(state.flags[1], kBlockNotFinite);
    for (size_t i = 2048; i < 4096; ++i) {
      ASSERT_EQ(state.inverse[i], before.inverse[i]) << i;
      ASSERT_NEAR(state.momentum[i], 0.9 * before.momentum[i], 0x1p-26) << i;
    }
    EXPECT_NE(state.inverse[0], before.inverse[0]);
  }
}

TEST_P(OnebitUpdateTest, OnlyTheBlocksOfTheRange) {
  State state;
  const State before = state;
  OnebitMomentum args = state.momentum_arguments();
  args.begin = kUpdateBlockElements;
  args.end = 2 * kUpdateBlockElements;
  momentum(args);
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    if (i / kUpdateBlockElements == 1) continue;
    ASSERT_EQ(state.momentum[i], before.momentum[i]) << i;
  }
  EXPECT_NE(state.momentum[kUpdateBlockElements], before.momentum[kUpdateBlockElements]);
}

TEST_P(OnebitUpdateTest, NotFiniteTakesTheBlocksGradientAsZero) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t at : {size_t{2500}, size_t{2502}}) {  // a moving entry, a still one
      ASSERT_EQ(stands_still(at), at == 2502);
      for (const bool preconditioned : {true, false}) {
        State state;
        state.gradient[at] = bad;
        const State before = state;
        OnebitMomentum args = state.momentum_arguments();
        args.preconditioned = preconditioned;
        momentum(args);
        EXPECT_EQ(state.flags, (std::vector<uint8_t>{0, kBlockNotFinite, 0}));
        for (size_t i = 2048; i < 4096; ++i) {
          ASSERT_NEAR(state.momentum[i], 0.9 * before.momentum[i], 0x1p-26) << i;
        }
        EXPECT_EQ(state.energy[1], 0);
        EXPECT_EQ(state.square[1], 0);
        EXPECT_GT(state.energy[0], 0);
      }
    }
  }
}

TEST_P(OnebitUpdateTest, StillEntriesWithGradientsAreReported) {
  State state;
  constexpr size_t kStill = 600 * 7 + 3;
  ASSERT_TRUE(stands_still(kStill));
  state.gradient[kStill] = 1e-30f;
  momentum(state.momentum_arguments());
  EXPECT_EQ(state.flags, (std::vector<uint8_t>{0, 0, kBlockStillMoved}));
  EXPECT_EQ(state.momentum[kStill], 0);
}

TEST_P(OnebitUpdateTest, Step) {
  const std::vector<UpdateRange> ranges{{0, 2064, 0.1}, {2064, kElements, 0}};
  for (const bool preconditioned : {true, false}) {
    State state;
    const State before = state;
    std::vector<bf16> copied(kElements);
    step({.value = view_of(state.value),
          .compute_value = View::of(copied.data(), {kElements}),
          .momentum = view_of(state.momentum),
          .inverse = preconditioned ? View() : view_of(state.inverse),
          .still = View::of(state.still.data(), {kElements / 8}),
          .block_factor = view_of(state.factor),
          .ranges = ranges,
          .learning_rate = 0.01});
    for (size_t i = 0; i < state.value.size(); ++i) {
      const double x = before.momentum[i] * (preconditioned ? 1.0 : double{before.inverse[i]});
      const double decay = i < 2064 ? 0.1 : 0;
      const double update = before.factor[i / kUpdateBlockElements] * x + decay * before.value[i];
      const double expected = before.value[i] - 0.01 * update;
      if (stands_still(i)) {
        ASSERT_EQ(state.value[i], before.value[i]) << i;
      } else {
        ASSERT_NEAR(state.value[i], expected, 0x1p-23) << i;
      }
      ASSERT_EQ(copied[i], bf16(state.value[i])) << i;
    }
    EXPECT_EQ(state.momentum, before.momentum);
  }
}

ONEBIT_ON_EVERY_DEVICE(OnebitUpdateTest);

}  // namespace
}  // namespace onebit::ops
