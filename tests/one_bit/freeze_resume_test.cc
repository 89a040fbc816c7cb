// Runs of 1-bit Adam that resume with another freeze_step than the one of their checkpoint.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8;

TrialOptions with_freeze(const FreezeOptions& freeze) {
  return {.optimizer = onebit_adam_recipe({.adam = {.weight_decay = 0.01}, .freeze = freeze})};
}

// A larger freeze_step on a checkpoint of the compressed phase: Adam continues from its moments.
TEST(FreezeAfterAResume, ReturnsToTheWarmupWhereTheFreezeIsLater) {
  const auto saved = on_ranks(2, with_freeze({.step = kFreeze}), [](Trial& trial) {
    trial.steps(kFreeze + 1);
    return std::pair(trial.save(), trial.values());
  });
  const TrialOptions later = with_freeze({.step = kFreeze + 5});
  const auto adam = on_ranks(2, later, [](Trial& trial) {
    trial.steps(kFreeze + 1);
    return trial.save();
  });
  for (const int world_size : {1, 2, 3}) {
    const auto ends = on_ranks(world_size, later, [&](Trial& trial) {
      trial.load({saved[0].first, saved[1].first}, saved[0].second, kFreeze + 2);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kWarmup);
      const MemoryState thawed = trial.save();
      // The second moment is Adam's but for one update of the ranks' own. Its sum is the level.
      double found = 0, expected = 0;
      for (const float one : thawed.replicated_buffers.at("variance")) found += one;
      for (const float one : adam[0].replicated_buffers.at("variance")) expected += one;
      EXPECT_NEAR(found, expected, 0.15 * expected);
      // The momentum is Adam's but for what one update's signs add.
      const auto& momentum = thawed.replicated_buffers.at("momentum");
      const auto& of_adam = adam[0].replicated_buffers.at("momentum");
      double squares = 0, squares_of_adam = 0, product = 0;
      for (size_t i = 0; i < momentum.size(); ++i) {
        squares += double{momentum[i]} * momentum[i];
        squares_of_adam += double{of_adam[i]} * of_adam[i];
        product += double{momentum[i]} * of_adam[i];
      }
      EXPECT_NEAR(std::sqrt(squares / squares_of_adam), 1, 0.2);
      EXPECT_GT(product / std::sqrt(squares * squares_of_adam), 0.9);
      trial.steps(4);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kCompressed);
      return std::pair(thawed, trial.values());
    });
    for (const auto& [thawed, values] : ends) {
      EXPECT_EQ(values, ends[0].second);
      EXPECT_EQ(thawed.replicated_buffers, ends[0].first.replicated_buffers);
    }
  }
}

// A freeze_step below the updates of a warm-up checkpoint: the next update is the warm-up's last.
TEST(FreezeAfterAResume, FreezesAtOnceWhereTheFreezeHasPassed) {
  constexpr int kAt = 11;
  const auto saved = on_ranks(2, with_freeze({.step = 20}), [](Trial& trial) {
    trial.steps(kAt);
    return std::pair(trial.save(), trial.values());
  });
  const auto expected = on_ranks(2, with_freeze({.step = kAt + 1}), [](Trial& trial) {
    trial.steps(kAt + 13);
    return std::pair(trial.save(), trial.values());
  });
  for (const int world_size : {1, 2, 3}) {
    const auto ends = on_ranks(world_size, with_freeze({.step = kFreeze}), [&](Trial& trial) {
      trial.load({saved[0].first, saved[1].first}, saved[0].second, kAt + 1);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kWarmup);
      EXPECT_TRUE(trial.step().froze_now);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kCompressed);
      trial.steps(12);
      return std::pair(trial.save(), trial.values());
    });
    for (const auto& [state, values] : ends) EXPECT_EQ(values, ends[0].second);
    if (world_size == 2) {
      EXPECT_EQ(ends, expected);
    }
  }
}

// A compressed run stays compressed, unless the requested freeze step is in the future.
TEST(FreezeAfterAResume, StaysCompressedWhereTheFreezeHasPassed) {
  const auto unbroken = on_ranks(2, with_freeze({.step = kFreeze}), [](Trial& trial) {
    trial.steps(kFreeze + 4);
    auto saved = std::pair(trial.save(), trial.values());
    trial.steps(4);
    return std::pair(saved, trial.values());
  });
  const auto& [state, values] = unbroken[0].first;
  const std::vector<MemoryState> states{state, unbroken[1].first.first};
  for (const FreezeOptions& now :
       {FreezeOptions{.step = 3}, {.step = kFreeze + 4}, {.step = std::nullopt}}) {
    const auto resumed = on_ranks(2, with_freeze(now), [&, &values = values](Trial& trial) {
      trial.load(states, values, kFreeze + 5);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kCompressed);
      trial.steps(4);
      return trial.values();
    });
    for (const auto& ended : resumed) EXPECT_EQ(ended, unbroken[0].second);
  }
}

}  // namespace
}  // namespace onebit::optim
