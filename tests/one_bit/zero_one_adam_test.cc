#include "onebit/exchange/one_bit/zero_one_adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "tests/base/message_of.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

// Updates 1 to 4 are dense, 6, 8, 10 and 12 refresh, 5, 7, 9 and 11 one bit. From 13 on the
// interval is 1 for six updates, then 2 for six, then 4.
constexpr ZeroOneOptions kSchedule{
    .variance_freeze = 12, .variance_scaler = 4, .local_scaler = 6, .local_limit = 4};
constexpr int kSteps = 34;

std::shared_ptr<const OptimizerRecipe> recipe(ZeroOneOptions schedule = kSchedule) {
  return zero_one_adam_recipe({.adam = {.weight_decay = 0.01}, .schedule = schedule});
}

int64_t local_updates(Trial& trial) {
  return dynamic_cast<CompressedOptimizer&>(trial.optimizer()).local_updates();
}

struct History {
  std::vector<std::vector<float>> own, common;
  std::vector<int64_t> local;
};

History history_of(Trial& trial) {
  History history;
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_TRUE(trial.step().applied);
    history.own.push_back(trial.values());
    history.common.push_back(trial.common_values());
    EXPECT_EQ(trial.values(), history.own.back());
    history.local.push_back(local_updates(trial));
  }
  return history;
}

TEST(ZeroOneAdam, RanksDifferBetweenExchangesOnly) {
  for (const int world_size : {2, 3}) {
    const auto all = on_ranks(world_size, {.optimizer = recipe()}, history_of);
    bool any_local = false;
    for (size_t step = 0; step < kSteps; ++step) {
      for (const History& one : all) {
        EXPECT_EQ(one.common[step], all[0].common[step]);
        for (const float value : one.own[step]) ASSERT_TRUE(std::isfinite(value));
      }
      const bool local = all[0].local[step] > 0;
      any_local = any_local || local;
      EXPECT_EQ(all[0].own[step] != all[1].own[step], local) << step;
      EXPECT_EQ(all[0].common[step] == all[0].own[step], !local) << step;
      // The common values are the values of the last exchange.
      if (local) {
        EXPECT_EQ(all[0].common[step], all[0].common[step - 1]) << step;
      }
    }
    EXPECT_TRUE(any_local);
  }
}

TEST(ZeroOneAdam, OverlapChangesNothing) {
  std::vector<std::vector<float>> ends;
  for (const bool overlap : {false, true}) {
    const auto values = on_ranks(3, {.optimizer = recipe(), .overlap = overlap}, [](Trial& trial) {
      trial.steps(kSteps);
      return trial.values();
    });
    ends.push_back(values[0]);
  }
  EXPECT_EQ(ends[0], ends[1]);
}

// Nothing is exchanged, so every update is 1-bit Adam's on one rank.
TEST(ZeroOneAdam, OnOneRankIsOneBitAdam) {
  const auto world = comm::make_single_rank();
  Trial plain(*world,
              {.optimizer = onebit_adam_recipe({.adam = {.weight_decay = 0.01},
                                                .freeze = {.step = kSchedule.variance_scaler}})});
  Trial local(*world, {.optimizer = recipe()});
  plain.steps(kSteps);
  local.steps(kSteps);
  EXPECT_EQ(local.values(), plain.values());
}

TEST(ZeroOneAdam, ResumesExactlyInEveryPhase) {
  for (const int at : {2, 4, 5, 6, 12, 15, 19, 20, 25, 26, 27}) {
    const TrialOptions options{.optimizer = recipe()};
    struct End {
      MemoryState saved, ended;
      std::vector<float> common, end_values;
    };
    const auto unbroken = on_ranks(2, options, [&](Trial& trial) {
      trial.steps(at);
      End end{.saved = trial.save(), .common = trial.common_values()};
      trial.steps(kSteps - at);
      end.ended = trial.save();
      end.end_values = trial.values();
      return end;
    });
    const std::vector<MemoryState> saved{unbroken[0].saved, unbroken[1].saved};
    const auto resumed = on_ranks(2, options, [&](Trial& trial) {
      trial.load(saved, unbroken[0].common, at + 1);
      trial.steps(kSteps - at);
      return End{.ended = trial.save(), .end_values = trial.values()};
    });
    for (size_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(resumed[rank].end_values, unbroken[rank].end_values) << "at " << at;
      EXPECT_EQ(resumed[rank].ended, unbroken[rank].ended) << "at " << at;
    }
  }
}

// The checkpoints were saved at an exchange, and between two exchanges.
TEST(ZeroOneAdam, ResumesOnOtherRanks) {
  const TrialOptions options{.optimizer = recipe()};
  for (const int at : {10, 20, 27}) {
    const auto saved = on_ranks(2, options, [&](Trial& trial) {
      trial.steps(at);
      return std::pair(trial.save(), trial.common_values());
    });
    const std::vector<MemoryState> states{saved[0].first, saved[1].first};
    for (const int world_size : {1, 3}) {
      const auto common = on_ranks(world_size, options, [&](Trial& trial) {
        trial.load(states, saved[0].second, at + 1);
        trial.steps(8);
        return trial.common_values();
      });
      for (const auto& one : common) {
        EXPECT_EQ(one, common[0]);
        for (const float value : one) ASSERT_TRUE(std::isfinite(value));
      }
      EXPECT_NE(common[0], saved[0].second);
    }
  }
}

// One rank has no exchange to come, which would send what the local updates have summed. Their
// gradients change its momentum as much as they have changed the momenta of the ranks.
TEST(ZeroOneAdam, OneRankTakesTheGradientsOfLocalUpdates) {
  std::vector<std::vector<float>> of_ranks, of_one;
  for (const float last : {1.0f, -1.0f}) {
    // Update 24 is the last exchange.
    const TrialOptions options{
        .optimizer = recipe(),
        .gradient = [last](int, int64_t step, int64_t) { return step <= 24 ? 1.0f : last; }};
    const auto saved = on_ranks(2, options, [](Trial& trial) {
      trial.steps(26);
      EXPECT_EQ(local_updates(trial), 2);
      return std::pair(trial.save(), trial.common_values());
    });
    of_ranks.push_back(saved[0].first.own_buffers.at("arrived"));
    of_one.push_back(on_ranks(1, options, [&](Trial& trial) {
      trial.load({saved[0].first, saved[1].first}, saved[0].second, 27);
      return trial.save().replicated_buffers.at("momentum");
    })[0]);
  }
  for (size_t i = 0; i < of_one[0].size(); ++i) {
    const float changed = of_ranks[0][i] - of_ranks[1][i];
    ASSERT_TRUE(i >= 96 || changed > 0.3f) << changed;
    // Its sum weighs the two updates alike, and v changes between them a little.
    ASSERT_NEAR(of_one[0][i] - of_one[1][i], changed, 1e-3f) << i;
  }
}

TEST(ZeroOneAdam, WritesTheComputeCopy) {
  on_ranks(2, {.optimizer = recipe(), .compute = DType::kBF16}, [](Trial& trial) {
    const auto expect_copied = [&] {
      const Tensor copied = to_cpu_f32(trial.table().compute_values());
      const std::vector<float> values = trial.values();
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(copied.data<float>()[i], static_cast<float>(bf16(values[i]))) << i;
      }
    };
    for (int step = 0; step < kSteps; ++step) {
      trial.step();
      expect_copied();
      trial.common_values();
      expect_copied();
    }
    return 0;
  });
}

// The mean over ranks and updates of noise around a mean is found by local updates as by Adam's:
// the values go where Adam's go.
TEST(ZeroOneAdam, LocalUpdatesFollowAdam) {
  constexpr int kLong = 400;
  const ZeroOneOptions schedule{
      .variance_freeze = 60, .variance_scaler = 8, .local_scaler = 60, .local_limit = 4};
  const Gradient steady = [](int rank, int64_t step, int64_t place) {
    const float noise = noisy_gradient(rank, step, place);
    return 0.3f * noise + 0.5f * noisy_gradient(0, 1, place);
  };
  const auto movement = [&](std::shared_ptr<const OptimizerRecipe> optimizer) {
    const TrialOptions options{.optimizer = std::move(optimizer), .gradient = steady};
    return on_ranks(4, options, [&](Trial& trial) {
      trial.steps(60);
      const std::vector<float> start = trial.common_values();
      trial.steps(kLong - 60);
      std::vector<float> moved = trial.common_values();
      for (size_t i = 0; i < moved.size(); ++i) moved[i] -= start[i];
      return moved;
    })[0];
  };
  const auto adam = movement(adam_recipe({})),
             local = movement(zero_one_adam_recipe({.schedule = schedule}));
  double product = 0, square = 0, local_square = 0;
  for (size_t i = 0; i < adam.size(); ++i) {
    product += double{adam[i]} * local[i];
    square += double{adam[i]} * adam[i];
    local_square += double{local[i]} * local[i];
  }
  EXPECT_GT(product / std::sqrt(square * local_square), 0.98);
  EXPECT_NEAR(std::sqrt(local_square / square), 1, 0.05);
}

// A non-finite gradient in a local update changes nothing. In an exchange it does not prevent the
// earlier local updates from taking effect on all ranks.
TEST(ZeroOneAdam, NotFiniteKeepsRanksTogether) {
  for (const bool two_levels : {false, true}) {
    for (const int64_t bad : {27, 28, 30}) {
      TrialOptions options{.optimizer = recipe()};
      if (two_levels) options = on_two_levels(std::move(options), {0, 0, 1, 1});
      options.gradient = [bad](int rank, int64_t step, int64_t place) {
        if (step == bad && rank == 1 && place == 5) return std::numeric_limits<float>::quiet_NaN();
        return noisy_gradient(rank, step, place);
      };
      const auto ends = on_ranks(two_levels ? 4 : 2, options, [&](Trial& trial) {
        for (int step = 1; step < bad; ++step) EXPECT_TRUE(trial.step().applied);
        const std::vector<float> before = trial.values();
        const bool local = local_updates(trial) > 0 && bad != 28;
        EXPECT_FALSE(trial.step().applied);
        if (local) {
          EXPECT_EQ(trial.values(), before) << bad;
        }
        trial.pass_over();
        trial.steps(12);
        return trial.common_values();
      });
      for (const auto& one : ends) EXPECT_EQ(one, ends[0]);
      for (const float value : ends[0]) ASSERT_TRUE(std::isfinite(value));
    }
  }
}

// In an exchange the finite entries of such a gradient move values with the earlier updates, the
// others do not: it is the same whatever they are. 3e20 counts as infinite.
TEST(ZeroOneAdam, WhatIsNotFiniteMovesNothing) {
  std::vector<std::vector<float>> ends;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 3e20f}) {
    TrialOptions options{.optimizer = recipe()};
    options.gradient = [bad](int rank, int64_t step, int64_t place) {
      return step == 28 && rank == 1 && place == 5 ? bad : noisy_gradient(rank, step, place);
    };
    ends.push_back(on_ranks(2, options, [](Trial& trial) {
      trial.steps(27);
      const std::vector<float> before = trial.common_values();
      EXPECT_FALSE(trial.step().applied);
      EXPECT_NE(trial.common_values(), before);
      return trial.common_values();
    })[0]);
  }
  EXPECT_EQ(ends[1], ends[0]);
  EXPECT_EQ(ends[2], ends[0]);
}

// Such an update has changed the momentum and the sum of each rank, which a checkpoint must keep:
// update 21 is the first without an exchange, 27 the second in a row.
TEST(ZeroOneAdam, ResumesExactlyAfterALocalUpdateThatWasNotFinite) {
  for (const int bad : {21, 27}) {
    TrialOptions options{.optimizer = recipe()};
    options.gradient = [bad](int rank, int64_t step, int64_t place) {
      if (step == bad && rank == 1 && place == 5) return std::numeric_limits<float>::quiet_NaN();
      return noisy_gradient(rank, step, place);
    };
    struct End {
      MemoryState saved, ended;
      std::vector<float> common;
    };
    const auto unbroken = on_ranks(2, options, [&](Trial& trial) {
      trial.steps(bad - 1);
      EXPECT_EQ(local_updates(trial), bad == 21 ? 0 : 2);
      EXPECT_FALSE(trial.step().applied);
      trial.pass_over();
      End end{.saved = trial.save(), .common = trial.common_values()};
      trial.steps(8);
      end.ended = trial.save();
      return end;
    });
    const std::vector<MemoryState> saved{unbroken[0].saved, unbroken[1].saved};
    const auto resumed = on_ranks(2, options, [&](Trial& trial) {
      trial.load(saved, unbroken[0].common, bad + 1);
      trial.steps(8);
      return trial.save();
    });
    for (size_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(resumed[rank], unbroken[rank].ended) << "at " << bad;
    }
  }
}

// A checkpoint of update 9, made by kSchedule: all averages of gradients so far are 1.
std::vector<std::pair<MemoryState, std::vector<float>>> after_nine_updates(TrialOptions options) {
  options.optimizer = recipe();
  return on_ranks(2, options, [](Trial& trial) {
    trial.steps(9);
    return std::pair(trial.save(), trial.common_values());
  });
}

// With 11, the run returns to the warm-up until then.
TEST(ZeroOneAdam, FollowsAChangedScheduleAfterAResume) {
  TrialOptions options{.gradient = [](int, int64_t step, int64_t) {
    return step < 12 ? 1.0f : static_cast<float>(std::sqrt(2.0));
  }};
  const auto states = after_nine_updates(options);
  for (const int64_t scaler : {2, 4, 11}) {
    ZeroOneOptions changed = kSchedule;
    changed.variance_scaler = scaler;
    changed.variance_freeze = 30;
    options.optimizer = recipe(changed);
    on_ranks(2, options, [&](Trial& trial) {
      trial.load({states[0].first, states[1].first}, states[0].second, 10);
      ZeroOneSchedule expected(changed, 9);
      for (int update = 10; update <= 30; ++update) {
        const auto kind = expected.next();
        const bool averages =
            kind == ZeroOneSchedule::Kind::kDense || kind == ZeroOneSchedule::Kind::kRefresh;
        EXPECT_EQ(trial.optimizer().gradient_need() == GradientNeed::kAveragedOverRanks, averages)
            << "scaler " << scaler << ", update " << update;
        EXPECT_TRUE(trial.step().applied);
        expected.advance();
      }
      return 0;
    });
  }
}

// Update 12 averages gradients after a warm-up of 11: the average counts as one of 12 updates.
TEST(ZeroOneAdam, WeighsTheVarianceAfterAReturnToTheWarmup) {
  TrialOptions options{.gradient = [](int, int64_t step, int64_t) {
    return step < 12 ? 1.0f : static_cast<float>(std::sqrt(2.0));
  }};
  const auto states = after_nine_updates(options);
  ZeroOneOptions changed = kSchedule;
  changed.variance_scaler = 11;
  options.optimizer = recipe(changed);
  on_ranks(2, options, [&](Trial& trial) {
    trial.load({states[0].first, states[1].first}, states[0].second, 10);
    trial.steps(2);
    const auto& optimizer = dynamic_cast<CompressedOptimizer&>(trial.optimizer());
    const Tensor before = to_cpu_f32(optimizer.variance());
    trial.step();
    const double beta2 = 0.999, weight = (1 - beta2) / (1 - std::pow(beta2, 12));
    for (const int64_t place : trial.places()) {
      const double old = before.data<float>()[place];
      EXPECT_NEAR(optimizer.variance().data<float>()[place], old + weight * (2 - old), 1e-6);
    }
    return 0;
  });
}

TEST(ZeroOneAdam, SendsNothingInLocalUpdates) {
  const auto sent = on_ranks(2, {.optimizer = recipe()}, [](Trial& trial) {
    trial.steps(24);
    std::vector<std::pair<bool, int64_t>> steps;
    for (int step = 0; step < 8; ++step) {
      const int64_t before = trial.optimizer().wire_bytes_sent();
      trial.step();
      steps.emplace_back(local_updates(trial) > 0, trial.optimizer().wire_bytes_sent() - before);
    }
    return steps;
  });
  for (const auto& [local, bytes] : sent[0]) EXPECT_EQ(bytes == 0, local);
}

}  // namespace
}  // namespace onebit::optim
