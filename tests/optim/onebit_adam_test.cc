#include "onebit/optim/onebit_adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8;

OptimizerConfig onebit_config() {
  return {.type = OptimizerType::kOneBitAdam, .weight_decay = 0.01, .freeze_step = kFreeze};
}

// The variants whose arithmetic differs.
std::vector<OptimizerConfig> variants() {
  std::vector<OptimizerConfig> all;
  for (const Coordinates coordinates : {Coordinates::kPreconditioned, Coordinates::kMomentum}) {
    for (const Variance variance : {Variance::kLiveLevel, Variance::kFrozen}) {
      OptimizerConfig config = onebit_config();
      config.coordinates = coordinates;
      config.variance = variance;
      config.bias_correction = variance == Variance::kLiveLevel;
      config.scale = coordinates == Coordinates::kMomentum ? ScaleRule::kRootMeanSquare
                                                           : ScaleRule::kMeanAbsolute;
      all.push_back(config);
    }
  }
  all.push_back(onebit_config());
  ONEBIT_INVARIANT(all.back().variance == Variance::kLocal);
  all.push_back(onebit_config());
  all.back().decoupled_decay = false;
  return all;
}

// With one rank nothing is compressed: Adam, in double precision, whose (bias-corrected) variance
// is held after the freeze; or which, where it is local, divides each gradient when it comes.
TEST(OneBitAdam, SwitchesWithoutASeam) {
  const std::pair<Coordinates, Variance> kinds[] = {
      {Coordinates::kPreconditioned, Variance::kFrozen},
      {Coordinates::kMomentum, Variance::kFrozen},
      {Coordinates::kPreconditioned, Variance::kLocal}};
  for (const bool correction : {true, false}) {
    for (const auto& [coordinates, variance] : kinds) {
      TrialOptions options{.optimizer = onebit_config()};
      options.optimizer.variance = variance;
      options.optimizer.coordinates = coordinates;
      options.optimizer.bias_correction = correction;
      // Inside a d that goes on it fades.
      if (variance == Variance::kLocal) options.optimizer.epsilon = 1e-20;
      const OptimizerConfig& config = options.optimizer;
      const auto world = comm::make_single_rank();
      Trial trial(*world, options);
      const std::vector<float> start = trial.values();
      constexpr int kSteps = 20;
      trial.steps(kSteps);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kCompressed);
      const std::vector<float> found = trial.values();
      for (const int64_t place : trial.places()) {
        const auto i = static_cast<size_t>(place);
        double value = start[i], m = 0, v = 0, c1 = 0, c2 = 0, d = 0;
        for (int64_t step = 1; step <= kSteps; ++step) {
          const double g = noisy_gradient(0, step, place), d_before = d;
          c1 = 0.9 * c1 + 0.1;
          if (step <= kFreeze || variance == Variance::kLocal) {
            v = 0.999 * v + 0.001 * g * g;
            c2 = 0.999 * c2 + 0.001;
            d = std::sqrt(v / (correction ? c2 : 1)) + config.epsilon;
          }
          m = 0.9 * m * (step > kFreeze ? d / d_before : 1) + 0.1 * g;
          const double decay = *trial.table().name_at(place) == "bias" ? 0 : 0.01;
          value -= 1e-3 * (m / (correction ? c1 : 1) / d + decay * value);
        }
        // Rounding of the value (up to 4) and of updates of at most 32 rates, each step; a d that
        // goes on carries three roundings of each of up to 12 steps.
        const double roundings = variance == Variance::kLocal ? 64 + 36 : 64;
        const double tolerance = kSteps * 0x1p-24 * (4 + roundings * 32 * 1e-3);
        ASSERT_NEAR(found[i], value, tolerance) << "element " << i;
      }
    }
  }
}

TEST(OneBitAdam, ReplicasStayEqual) {
  for (const int world_size : {1, 2, 3}) {
    for (const OptimizerConfig& config : variants()) {
      const auto all = on_ranks(world_size, {.optimizer = config}, [](Trial& trial) {
        std::vector<std::vector<float>> history;
        for (int step = 0; step < 14; ++step) {
          const StepReport report = trial.step();
          EXPECT_TRUE(report.applied);
          EXPECT_EQ(report.phase, step < kFreeze ? Phase::kWarmup : Phase::kCompressed);
          EXPECT_EQ(report.froze_now, step + 1 == kFreeze);
          history.push_back(trial.values());
          for (const float value : history.back()) EXPECT_TRUE(std::isfinite(value));
        }
        return history;
      });
      for (const auto& history : all) EXPECT_EQ(history, all[0]);
    }
  }
}

TEST(OneBitAdam, OverlapChangesNothing) {
  for (const OptimizerConfig& config : variants()) {
    for (const int world_size : {1, 3}) {
      std::vector<std::vector<float>> ends;
      for (const bool overlap : {false, true}) {
        const auto values =
            on_ranks(world_size, {.optimizer = config, .overlap = overlap}, [](Trial& trial) {
              trial.steps(15);
              return trial.values();
            });
        ends.push_back(values[0]);
      }
      EXPECT_EQ(ends[0], ends[1]);
    }
  }
}

// What is not transmitted is owed: averages over ranks of (x + what was owed) before and after the
// exchange are equal.
TEST(OneBitAdam, ErrorFeedbackConserves) {
  constexpr int kWorld = 3;
  TrialOptions options{.optimizer = onebit_config()};
  options.run.bucket_bytes = 1 << 20;  // one bucket: owned chunks are simply one after the other
  const auto states = on_ranks(kWorld, options, [](Trial& trial) {
    trial.steps(kFreeze + 3);
    const MemoryState before = trial.save();
    trial.step();
    return std::pair(before, trial.save());
  });
  const auto elements = states[0].first.replicated_buffers.at("momentum").size();
  const int64_t step = kFreeze + 4;
  std::vector<double> balance(elements, 0.0);
  const auto add_server = [&](bool after, double sign) {
    size_t place = 0;
    for (int rank = 0; rank < kWorld; ++rank) {
      const auto& own = (after ? states[static_cast<size_t>(rank)].second
                               : states[static_cast<size_t>(rank)].first)
                            .own_buffers;
      if (!own.contains("server_residual")) continue;
      for (const float one : own.at("server_residual")) balance[place++] += sign * one;
    }
    EXPECT_EQ(place, elements);
  };
  add_server(false, 1);
  add_server(true, -1);
  for (int rank = 0; rank < kWorld; ++rank) {
    const auto& [before, after] = states[static_cast<size_t>(rank)];
    const auto& inverse = after.own_buffers.at("inverse");
    for (size_t i = 0; i < elements; ++i) {
      const double x = before.replicated_buffers.at("momentum")[i];
      const double g = inverse[i] == 0 ? 0 : noisy_gradient(rank, step, static_cast<int64_t>(i));
      const double y = 0.9 * x + 0.1 * g * inverse[i];
      balance[i] += (y + before.own_buffers.at("worker_residual")[i] -
                     after.own_buffers.at("worker_residual")[i] -
                     after.replicated_buffers.at("momentum")[i]) /
                    kWorld;
    }
  }
  // Everything is of size 1 to 40 (1 / sqrt(1 - beta2) at most); a few roundings each.
  for (size_t i = 0; i < elements; ++i) {
    ASSERT_NEAR(balance[i], 0, 16 * 40 * 0x1p-24) << i;
  }
}

TEST(OneBitAdam, ResumesExactlyInEveryPhase) {
  for (const OptimizerConfig& config : variants()) {
    for (const int at : {3, 7, 8, 12}) {
      const TrialOptions options{.optimizer = config};
      struct End {
        MemoryState saved, ended;
        std::vector<float> values, end_values;
      };
      const auto unbroken = on_ranks(2, options, [&](Trial& trial) {
        trial.steps(at);
        End end{.saved = trial.save(), .values = trial.values()};
        trial.steps(14 - at);
        end.ended = trial.save();
        end.end_values = trial.values();
        return end;
      });
      const std::vector<MemoryState> saved{unbroken[0].saved, unbroken[1].saved};
      const auto resumed = on_ranks(2, options, [&](Trial& trial) {
        trial.load(saved, unbroken[0].values, at + 1);
        trial.steps(14 - at);
        return End{.ended = trial.save(), .end_values = trial.values()};
      });
      for (size_t rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(resumed[rank].end_values, unbroken[rank].end_values) << "at " << at;
        EXPECT_EQ(resumed[rank].ended, unbroken[rank].ended) << "at " << at;
      }
    }
  }
}

// The error feedback that the ranks owe together is the same before and after, whatever their
// number.
TEST(OneBitAdam, ResumesOnOtherRanks) {
  const TrialOptions options{.optimizer = onebit_config()};
  const auto saved = on_ranks(2, options, [](Trial& trial) {
    trial.steps(kFreeze + 4);
    return std::pair(trial.save(), trial.values());
  });
  const std::vector<MemoryState> states{saved[0].first, saved[1].first};
  for (const int world_size : {1, 3}) {
    const auto values = on_ranks(world_size, options, [&](Trial& trial) {
      trial.load(states, saved[0].second, kFreeze + 5);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kCompressed);
      trial.steps(4);
      return trial.values();
    });
    for (const auto& one : values) EXPECT_EQ(one, values[0]);
    EXPECT_NE(values[0], saved[0].second);
  }
  // Ranks that are others start from the same d.
  const auto inverses = on_ranks(3, options, [&](Trial& trial) {
    trial.load(states, saved[0].second, kFreeze + 5);
    return trial.save().own_buffers.at("inverse");
  });
  const auto& first = states[0].own_buffers.at("inverse");
  const auto& second = states[1].own_buffers.at("inverse");
  EXPECT_NE(first, second);
  for (size_t i = 0; i < first.size(); ++i) {
    const double mean = (1 / std::pow(first[i], 2) + 1 / std::pow(second[i], 2)) / 2;
    for (const auto& inverse : inverses) {
      ASSERT_NEAR(inverse[i], 1 / std::sqrt(mean), 4 * 0x1p-24 * inverse[i]) << i;
    }
  }
  // With one rank nothing is owed any more: it has been paid into the momentum.
  const auto paid = on_ranks(1, options, [&](Trial& trial) {
    trial.load(states, saved[0].second, kFreeze + 5);
    return trial.save();
  });
  double owed = 0, difference = 0;
  for (const MemoryState& state : states) {
    for (const float one : state.own_buffers.at("worker_residual")) owed += one / 2.0;
    for (const float one : state.own_buffers.at("server_residual")) owed += one;
  }
  const auto& before = states[0].replicated_buffers.at("momentum");
  const auto& after = paid[0].replicated_buffers.at("momentum");
  for (size_t i = 0; i < before.size(); ++i) difference += double{after[i]} - before[i];
  EXPECT_NE(owed, 0);
  EXPECT_NEAR(difference, owed, static_cast<double>(before.size()) * 40 * 0x1p-24);
}

Gradient with_bad(int bad_rank, int64_t bad_step, float bad) {
  return [=](int rank, int64_t step, int64_t place) {
    if (rank == bad_rank && step == bad_step && place == 5000) return bad;
    return noisy_gradient(rank, step, place);
  };
}

TEST(OneBitAdam, NotFiniteMovesNothing) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const bool overlap : {false, true}) {
      const TrialOptions options{.optimizer = onebit_config(),
                                 .gradient = with_bad(1, kFreeze + 3, bad),
                                 .overlap = overlap};
      const auto values = on_ranks(3, options, [](Trial& trial) {
        trial.steps(kFreeze + 2);
        const std::vector<float> before = trial.values();
        for (int attempt = 0; attempt < 3; ++attempt) {
          const StepReport report = trial.step();
          EXPECT_FALSE(report.applied);
          EXPECT_EQ(trial.values(), before);
        }
        for (const auto& [name, buffer] : trial.save().own_buffers) {
          for (const float one : buffer) EXPECT_TRUE(std::isfinite(one)) << name;
        }
        for (const auto& [name, buffer] : trial.save().replicated_buffers) {
          for (const float one : buffer) EXPECT_TRUE(std::isfinite(one)) << name;
        }
        return before;
      });
      for (const auto& one : values) EXPECT_EQ(one, values[0]);
    }
  }
}

TEST(OneBitAdam, StateGrowsAtTheFreeze) {
  on_ranks(2, {.optimizer = onebit_config()}, [](Trial& trial) {
    const int64_t warmup = trial.optimizer().state_bytes();
    trial.steps(kFreeze - 1);
    EXPECT_EQ(trial.optimizer().state_bytes(), warmup);
    trial.step();
    // One f32 an element for the worker, one for what this rank owns.
    EXPECT_GE(trial.optimizer().state_bytes(), warmup + 4 * trial.table().size_elements());
    EXPECT_GT(trial.optimizer().state_bytes(), warmup);
    return 0;
  });
}

TEST(OneBitAdam, WritesTheComputeCopy) {
  const TrialOptions options{.optimizer = onebit_config(), .compute = DType::kBF16};
  on_ranks(2, options, [](Trial& trial) {
    trial.steps(kFreeze + 3);
    const Tensor copied = to_cpu_f32(trial.table().compute_values());
    const std::vector<float> values = trial.values();
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(copied.data<float>()[i], static_cast<float>(bf16(values[i]))) << i;
    }
    return 0;
  });
}

// Gradients grow tenfold after the freeze: a frozen variance lets the updates grow with them, a
// live level and a local variance bring them back.
TEST(OneBitAdam, GrowingGradientsAreBraked) {
  constexpr int64_t kLaterFreeze = 40;
  const Gradient growing = [](int rank, int64_t step, int64_t place) {
    return noisy_gradient(rank, step, place) * (step > kLaterFreeze ? 10.0f : 1.0f);
  };
  const auto last_update = [&](Variance variance) {
    TrialOptions options{.optimizer = onebit_config(), .gradient = growing};
    options.optimizer.variance = variance;
    options.optimizer.weight_decay = 0;
    options.optimizer.freeze_step = kLaterFreeze;
    return on_ranks(2, options, [&](Trial& trial) {
      trial.steps(kLaterFreeze + 400);
      const std::vector<float> before = trial.values();
      trial.step();
      const std::vector<float> after = trial.values();
      double square = 0;
      for (const int64_t place : trial.places()) {
        const auto i = static_cast<size_t>(place);
        square += std::pow(double{after[i]} - before[i], 2);
      }
      return std::sqrt(square / static_cast<double>(trial.places().size())) / 1e-3;
    })[0];
  };
  const double frozen = last_update(Variance::kFrozen), live = last_update(Variance::kLiveLevel);
  // The level settles near 100 (to within what 400 steps at 0.99 leave), the updates near a tenth.
  EXPECT_GT(frozen, 2);
  EXPECT_NEAR(live, frozen / 10, frozen / 10 * 0.5);
  EXPECT_NEAR(last_update(Variance::kLocal), live, live * 0.5);
}

TEST(OneBitAdam, ObservesTheLastWarmupSteps) {
  TrialOptions options{.optimizer = onebit_config()};
  options.optimizer.freeze_step = 60;
  on_ranks(1, options, [](Trial& trial) {
    for (int step = 1; step <= 62; ++step) {
      EXPECT_EQ(trial.optimizer().observes_local_gradients(), step > 10 && step <= 60) << step;
      trial.step();
    }
    return 0;
  });
}

TEST(OneBitAdam, CountsWireBytes) {
  on_ranks(2, {.optimizer = onebit_config()}, [](Trial& trial) {
    trial.steps(kFreeze);
    const int64_t before = trial.optimizer().wire_bytes_sent();
    trial.step();
    const int64_t sent = trial.optimizer().wire_bytes_sent() - before;
    // Half of a bit an element, twice, and scales; nothing like 16 bits.
    const int64_t elements = trial.table().size_elements();
    EXPECT_GT(sent, elements / 8 / 2 * 2 - 64);
    EXPECT_LT(sent, 2 * elements / 15);
    return 0;
  });
}

}  // namespace
}  // namespace onebit::optim
