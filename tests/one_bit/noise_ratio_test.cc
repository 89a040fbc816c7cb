#include "onebit/exchange/one_bit/noise_ratio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/updates/onebit_adam_update.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

using Values = std::vector<float>;

// Sums of one cycle whose average over ranks has the square `average` in every block.
struct Sums {
  Values energy, variance, sketch;

  Sums(int64_t blocks, double local, double average)
      : energy(static_cast<size_t>(blocks), static_cast<float>(local)),
        variance(energy.size(), 2.0f),
        sketch(energy.size(), static_cast<float>(std::sqrt(average))) {}
  NoiseRatio::Cycle cycle() const {
    return {.energy = energy, .variance = variance, .sketch = sketch};
  }
};

TEST(NoiseRatio, StartsFromNoiseAloneAndFollows) {
  for (const int world_size : {2, 8}) {
    on_ranks(world_size, {}, [&](Trial& trial) {
      NoiseRatio noise(40, world_size);
      EXPECT_EQ(noise.norm_ratio(), 0);
      for (const float ratio : noise.ratios()) EXPECT_EQ(ratio, static_cast<float>(world_size));
      // Signal alone: every rank has the average's size.
      for (int cycle = 0; cycle < 200; ++cycle) {
        noise.follow(trial.communicator(), Sums(40, 9, 9).cycle());
        if (cycle == 0) {
          EXPECT_NEAR(noise.norm_ratio(), 1, 1e-6);
        }
      }
      for (const float ratio : noise.ratios()) EXPECT_NEAR(ratio, 1, 0.01);
      // Half of the average is noise.
      const double half = 1 + 0.5 * (world_size - 1);
      for (int cycle = 0; cycle < 200; ++cycle) {
        noise.follow(trial.communicator(), Sums(40, 9 * half, 9).cycle());
      }
      for (const float ratio : noise.ratios()) EXPECT_NEAR(ratio, half, 0.01 * half);
      EXPECT_NEAR(noise.norm_ratio(), 1 / std::sqrt(half), 0.01);
      return 0;
    });
  }
}

// A model that leaves its plateau: a running mean of weight 0.04 would take 200 updates to halve
// the difference, and the distance that values move would be a quarter too long.
TEST(NoiseRatio, FollowsAFallOfTheNoiseWithinFiveCycles) {
  on_ranks(8, {}, [&](Trial& trial) {
    NoiseRatio noise(40, 8);
    for (int cycle = 0; cycle < 200; ++cycle) {
      noise.follow(trial.communicator(), Sums(40, 9 * 7.8, 9).cycle());
    }
    for (int cycle = 0; cycle < 5; ++cycle) {
      noise.follow(trial.communicator(), Sums(40, 9 * 1.4, 9).cycle());
    }
    for (const float ratio : noise.ratios()) EXPECT_LT(ratio, 4);
    EXPECT_GT(noise.norm_ratio(), 0.5);
    return 0;
  });
}

// A sketch's square is a normal number's square: a group of 16 blocks measures it to a third.
TEST(NoiseRatio, TheNoiseOfSketchesIsNoChange) {
  on_ranks(4, {}, [&](Trial& trial) {
    NoiseRatio noise(kBlocksInGroup, 4);
    RandomSequence random(3, 4, 5);
    float least = 4, most = 1;
    for (int cycle = 0; cycle < 2000; ++cycle) {
      Sums sums(kBlocksInGroup, 9 * 2, 9);
      for (float& sketch : sums.sketch) {
        const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
        sketch = static_cast<float>(3 * radius * std::cos(6.283185307 * random.uniform()));
      }
      noise.follow(trial.communicator(), sums.cycle());
      if (cycle < 100) continue;
      least = std::min(least, noise.ratios()[0]);
      most = std::max(most, noise.ratios()[0]);
    }
    EXPECT_GT(least, 1.6);
    EXPECT_LT(most, 2.6);
    return 0;
  });
}

TEST(NoiseRatio, StaysBetweenSignalAloneAndNoiseAlone) {
  on_ranks(4, {}, [](Trial& trial) {
    NoiseRatio noise(3, 4);
    for (int cycle = 0; cycle < 200; ++cycle) {
      noise.follow(trial.communicator(), Sums(3, 1, 9).cycle());
    }
    for (const float ratio : noise.ratios()) EXPECT_EQ(ratio, 1);
    for (int cycle = 0; cycle < 200; ++cycle) {
      noise.follow(trial.communicator(), Sums(3, 9, 0).cycle());
    }
    for (const float ratio : noise.ratios()) EXPECT_EQ(ratio, 4);
    return 0;
  });
}

TEST(NoiseRatio, GroupsAreApart) {
  on_ranks(2, {}, [](Trial& trial) {
    NoiseRatio noise(2 * kBlocksInGroup, 2);
    Sums sums(2 * kBlocksInGroup, 9, 9);
    for (size_t block = 0; block < kBlocksInGroup; ++block) sums.energy[block] = 18;
    for (int cycle = 0; cycle < 300; ++cycle) noise.follow(trial.communicator(), sums.cycle());
    EXPECT_NEAR(noise.ratios().front(), 2, 0.01);
    EXPECT_NEAR(noise.ratios().back(), 1, 0.01);
    return 0;
  });
}

TEST(NoiseRatio, KeepsTheShareOfNoiseOnOtherRanks) {
  const double share = 0.6;
  const auto ratio_of = [&](int ranks) { return 1 + share * (ranks - 1); };
  const auto states = on_ranks(2, {}, [&](Trial& trial) {
    NoiseRatio noise(5, 2);
    for (int cycle = 0; cycle < 300; ++cycle) {
      noise.follow(trial.communicator(), Sums(5, 9 * ratio_of(2), 9).cycle());
    }
    MemoryState state;
    noise.save(state);
    return state;
  });
  for (const int ranks : {2, 3, 8}) {
    NoiseRatio noise(5, ranks);
    noise.load(MemoryReader(states));
    for (const float ratio : noise.ratios()) EXPECT_NEAR(ratio, ratio_of(ranks), 0.02);
    EXPECT_NEAR(noise.norm_ratio(), 1 / std::sqrt(ratio_of(ranks)), 0.01);
  }
}

// One rank cannot distinguish noise from signal, so more ranks start by assuming only noise, as
// after a freeze: with a ratio of one, updates would be too small by up to the root of the number
// of ranks.
TEST(NoiseRatio, StartsAgainAfterOneRank) {
  const auto alone = on_ranks(1, {}, [](Trial&) {
    MemoryState state;
    NoiseRatio(5, 1).save(state);
    return state;
  });
  on_ranks(4, {}, [&](Trial& trial) {
    NoiseRatio noise(5, 4);
    noise.follow(trial.communicator(), Sums(5, 9, 9).cycle());
    noise.load(MemoryReader(alone));
    for (const float ratio : noise.ratios()) EXPECT_EQ(ratio, 4);
    EXPECT_EQ(noise.norm_ratio(), 0);
    noise.follow(trial.communicator(), Sums(5, 18, 9).cycle());
    for (const float ratio : noise.ratios()) EXPECT_NEAR(ratio, 2, 1e-6);
    return 0;
  });
}

// A signal that all ranks share and noise of each, so that the average over ranks has mean square 1
// and `share` of that is noise.
float noisy_signal(int ranks, double share, int rank, int64_t step, int64_t place) {
  RandomSequence random(5, static_cast<uint64_t>(rank + 1),
                        static_cast<uint64_t>(step * 1000003 + place));
  const double noise = std::sqrt(3 * share * ranks) * (2 * random.uniform() - 1);
  const double signal = std::sqrt(2 * (1 - share)) *
                        std::sin(0.002 * static_cast<double>(step) + static_cast<double>(place));
  return static_cast<float>(signal + noise);
}

double mean_of_moving(const Values& variance) {
  double sum = 0;
  int64_t count = 0;
  for (const float one : variance) {
    sum += one;
    count += one > 0 ? 1 : 0;
  }
  return sum / static_cast<double>(count);
}

// The whole compressed phase on eight ranks, with a share of noise that rises after the freeze: the
// ranks' variance continues to follow Adam's.
TEST(NoiseRatio, VarianceFollowsAdamsWhileTheShareOfNoiseRises) {
  constexpr int kWorld = 8, kSteps = 700;
  for (const int64_t freeze : {6, 60}) {
    const auto gradient = [freeze](int rank, int64_t step, int64_t place) {
      return noisy_signal(kWorld, step <= freeze ? 0.3 : 0.9, rank, step, place);
    };
    TrialOptions options{
        .optimizer = onebit_adam_recipe({.adam = {.beta2 = 0.99}, .freeze = {.step = freeze}}),
        .gradient = gradient};
    const auto states = on_ranks(kWorld, options, [&](Trial& trial) {
      trial.steps(kSteps);
      return trial.save();
    });
    for (const MemoryState& state : states) {
      EXPECT_NEAR(mean_of_moving(state.own_buffers.at("variance")), 1, 0.1)
          << "freeze after " << freeze;
    }
  }
}

// The share of noise is measured continuously: the measurements of the first updates after the
// freeze lose their influence when gradients change, in either direction.
TEST(NoiseRatio, VarianceFollowsAdamsWhenTheShareOfNoiseChangesLongAfterTheFreeze) {
  constexpr int kWorld = 4;
  constexpr int64_t kFreeze = 6, kChange = 300;  // 32 cycles are followed by then
  for (const auto& [early, late] : {std::pair(0.1, 0.9), std::pair(0.9, 0.1)}) {
    const auto gradient = [before = early, after = late](int rank, int64_t step, int64_t place) {
      return noisy_signal(kWorld, step <= kChange ? before : after, rank, step, place);
    };
    const TrialOptions options{
        .optimizer = onebit_adam_recipe({.adam = {.beta2 = 0.99}, .freeze = {.step = kFreeze}}),
        .gradient = gradient};
    const auto expect_near_adams = [](Trial& trial, double share) {
      EXPECT_NEAR(mean_of_moving(trial.save().own_buffers.at("variance")), 1, 0.15) << share;
      // 1.3 or 3.7, from an estimate of six blocks.
      const double expected = 1 + share * (kWorld - 1), ratio = trial.step().norm_ratio;
      EXPECT_NEAR(1 / (ratio * ratio), expected, 0.3 * expected);
    };
    on_ranks(kWorld, options, [&, before = early, after = late](Trial& trial) {
      trial.steps(kChange - 1);
      expect_near_adams(trial, before);
      // Four times the memory of a running mean with weight 0.04 per cycle.
      trial.steps(4 * 9 * 25);
      expect_near_adams(trial, after);
      return 0;
    });
  }
}

}  // namespace
}  // namespace onebit::optim
