#include "onebit/exchange/one_bit/onebit_adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8;

OneBitAdamOptions onebit_options() {
  return {.adam = {.weight_decay = 0.01}, .freeze = {.step = kFreeze}};
}

// The variants whose arithmetic differs, 1-bit LAMB among them.
std::vector<std::shared_ptr<const OptimizerRecipe>> variants() {
  OneBitAdamOptions added_decay = onebit_options(), biased = onebit_options();
  added_decay.adam.decoupled_decay = false;
  biased.adam.bias_correction = false;
  return {onebit_adam_recipe(onebit_options()), onebit_adam_recipe(added_decay),
          onebit_adam_recipe(biased),
          onebit_lamb_recipe(
              {.lamb = {.adam = onebit_options().adam}, .freeze = onebit_options().freeze})};
}

// With one rank nothing is compressed: equals Adam in double precision whose momentum after the
// freeze consists of gradients that were divided by the variance of their update.
TEST(OneBitAdam, SwitchesWithoutASeam) {
  for (const bool correction : {true, false}) {
    OneBitAdamOptions onebit = onebit_options();
    onebit.adam.bias_correction = correction;
    // Its share of d changes with the bias of the variance.
    onebit.adam.epsilon = 1e-20;
    const TrialOptions options{.optimizer = onebit_adam_recipe(onebit)};
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
        v = 0.999 * v + 0.001 * g * g;
        c2 = 0.999 * c2 + 0.001;
        d = std::sqrt(v / (correction ? c2 : 1)) + onebit.adam.epsilon;
        m = 0.9 * m * (step > kFreeze ? d / d_before : 1) + 0.1 * g;
        const double decay = *trial.table().name_at(place) == "bias" ? 0 : 0.01;
        value -= 1e-3 * (m / (correction ? c1 : 1) / d + decay * value);
      }
      // Rounding of the value (up to 4) and of updates of at most 32 learning rates, each step. The
      // variance carries three roundings of each of up to 12 steps.
      const double tolerance = kSteps * 0x1p-24 * (4 + 100 * 32 * 1e-3);
      ASSERT_NEAR(found[i], value, tolerance) << "element " << i;
    }
  }
}

TEST(OneBitAdam, ReplicasStayEqual) {
  for (const int world_size : {1, 2, 3}) {
    for (const auto& optimizer : variants()) {
      const auto all = on_ranks(world_size, {.optimizer = optimizer}, [](Trial& trial) {
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
  for (const auto& optimizer : variants()) {
    for (const int world_size : {1, 3}) {
      std::vector<std::vector<float>> ends;
      for (const bool overlap : {false, true}) {
        const auto values =
            on_ranks(world_size, {.optimizer = optimizer, .overlap = overlap}, [](Trial& trial) {
              trial.steps(15);
              return trial.values();
            });
        ends.push_back(values[0]);
      }
      EXPECT_EQ(ends[0], ends[1]);
    }
  }
}

// Values that are not sent become residuals of workers and owners.
TEST(OneBitAdam, ErrorFeedbackConserves) {
  constexpr int kWorld = 3;
  TrialOptions options{.optimizer = onebit_adam_recipe(onebit_options())};
  options.run.bucket_bytes = 1 << 20;  // one bucket: owned chunks are simply one after the other
  struct Step {
    MemoryState before, after;
    std::vector<float> momentum;
  };
  const auto ranks = on_ranks(kWorld, options, [](Trial& trial) {
    trial.steps(kFreeze + 3);
    Step step{.before = trial.save()};
    trial.step();
    step.after = trial.save();
    const Shape whole{trial.table().size_elements()};
    step.momentum.resize(static_cast<size_t>(whole.elements()));
    const View kept = View::of(step.momentum.data(), whole);
    dynamic_cast<CompressedOptimizer&>(trial.optimizer())
        .momentum()
        .visit_arrived(trial.context(), kept, {}, [](Range, View) {});
    return step;
  });
  const size_t elements = ranks[0].momentum.size();
  const int64_t step = kFreeze + 4;
  const auto owners = [&](const std::string& name, MemoryState Step::*when) {
    std::vector<float> all;
    for (const Step& rank : ranks) {
      const auto& own = (rank.*when).own_buffers;
      if (!own.contains(name)) continue;
      all.insert(all.end(), own.at(name).begin(), own.at(name).end());
    }
    EXPECT_EQ(all.size(), elements);
    return all;
  };
  const auto m_before = owners("owner_momentum", &Step::before);
  const auto m_after = owners("owner_momentum", &Step::after);
  const auto e_before = owners("server_residual", &Step::before);
  const auto e_after = owners("server_residual", &Step::after);
  // The share of g^2 in the variance that divides it. "words", the first tensor, is looked up, and
  // the noise has not been measured yet.
  const double rest = 0.001 / (1 - std::pow(0.999, step));
  for (size_t i = 0; i < elements; ++i) {
    const double own_share = rest / kWorld / (i / 256 <= (48 * 96 - 1) / 256 ? kWorld : 1);
    double average = 0;
    for (int rank = 0; rank < kWorld; ++rank) {
      const auto& [before, after, momentum] = ranks[static_cast<size_t>(rank)];
      const double v = before.own_buffers.at("variance")[i];
      const double g = noisy_gradient(rank, step, static_cast<int64_t>(i));
      const double y = v == 0 ? 0 : g / (std::sqrt(v + own_share * g * g) + 1e-8);
      average += (y + before.own_buffers.at("worker_residual")[i] -
                  after.own_buffers.at("worker_residual")[i]) /
                 kWorld;
    }
    // Everything is of size 1 to 100 (ranks / sqrt(1 - beta2) at most), with a few roundings each.
    const double tolerance = 32 * 100 * 0x1p-24;
    ASSERT_NEAR(m_after[i], 0.9 * m_before[i] + 0.1 * average, tolerance) << i;
    const double ahead = m_after[i] + 0.145 * (double{m_after[i]} - m_before[i]);
    ASSERT_NEAR(ranks[0].momentum[i], ahead + e_before[i] - e_after[i], tolerance) << i;
  }
}

TEST(OneBitAdam, ResumesExactlyInEveryPhase) {
  for (const auto& optimizer : variants()) {
    constexpr int kSteps = 22;
    // The last one is after the first measurement of the noise, nine updates after the freeze.
    for (const int at : {3, 7, 8, 12, 19}) {
      const TrialOptions options{.optimizer = optimizer};
      struct End {
        MemoryState saved, ended;
        std::vector<float> values, end_values;
      };
      const auto unbroken = on_ranks(2, options, [&](Trial& trial) {
        trial.steps(at);
        End end{.saved = trial.save(), .values = trial.values()};
        trial.steps(kSteps - at);
        end.ended = trial.save();
        end.end_values = trial.values();
        return end;
      });
      const std::vector<MemoryState> saved{unbroken[0].saved, unbroken[1].saved};
      const auto resumed = on_ranks(2, options, [&](Trial& trial) {
        trial.load(saved, unbroken[0].values, at + 1);
        trial.steps(kSteps - at);
        return End{.ended = trial.save(), .end_values = trial.values()};
      });
      for (size_t rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(resumed[rank].end_values, unbroken[rank].end_values) << "at " << at;
        EXPECT_EQ(resumed[rank].ended, unbroken[rank].ended) << "at " << at;
      }
    }
  }
}

// The sum of the ranks' residuals is the same before and after, whatever their number.
TEST(OneBitAdam, ResumesOnOtherRanks) {
  const TrialOptions options{.optimizer = onebit_adam_recipe(onebit_options())};
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
  // Ranks that are others start from the same variance.
  const auto variances = on_ranks(3, options, [&](Trial& trial) {
    trial.load(states, saved[0].second, kFreeze + 5);
    return trial.save().own_buffers.at("variance");
  });
  const auto& first = states[0].own_buffers.at("variance");
  const auto& second = states[1].own_buffers.at("variance");
  EXPECT_NE(first, second);
  for (size_t i = 0; i < first.size(); ++i) {
    const double mean = (double{first[i]} + second[i]) / 2;
    for (const auto& variance : variances) ASSERT_NEAR(variance[i], mean, 0x1p-23 * mean) << i;
  }
  // With one rank there are no residuals: they were added to the momentum.
  const auto paid = on_ranks(1, options, [&](Trial& trial) {
    trial.load(states, saved[0].second, kFreeze + 5);
    return trial.save();
  });
  double owed = 0, difference = 0;
  for (const MemoryState& state : states) {
    for (const float one : state.own_buffers.at("worker_residual")) owed += one / 2.0;
    for (const float one : state.own_buffers.at("server_residual")) owed += one;
  }
  const auto& after = paid[0].replicated_buffers.at("momentum");
  for (const float one : after) difference += one;
  for (const MemoryState& state : states) {
    for (const float one : state.own_buffers.at("owner_momentum")) difference -= one;
  }
  EXPECT_NE(owed, 0);
  // The residuals are added to the momentum like gradients.
  EXPECT_NEAR(difference, 0.1 * owed, static_cast<double>(after.size()) * 40 * 0x1p-24);
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
      const TrialOptions options{.optimizer = onebit_adam_recipe(onebit_options()),
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

// All memory of both phases is reserved before the first step.
TEST(OneBitAdam, ReservesTheCompressedPhaseAtTheStart) {
  on_ranks(2, {.optimizer = onebit_adam_recipe(onebit_options())}, [](Trial& trial) {
    const int64_t elements = trial.table().size_elements();
    const int64_t reserved = trial.optimizer().state_bytes();
    // Two moments, one of which is reused for the worker residual, and momentum and residual of the
    // owner. No other buffer has all elements. A bucket and the numbers of blocks take a byte.
    EXPECT_GT(reserved, 12 * elements);
    EXPECT_LT(reserved, 13 * elements + 2 * 16384);
    trial.steps(kFreeze + 12);
    EXPECT_EQ(trial.optimizer().state_bytes(), reserved);
    return 0;
  });
}

TEST(OneBitAdam, WritesTheComputeCopy) {
  const TrialOptions options{.optimizer = onebit_adam_recipe(onebit_options()),
                             .compute = DType::kBF16};
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

TEST(OneBitAdam, CountsWireBytes) {
  on_ranks(2, {.optimizer = onebit_adam_recipe(onebit_options())}, [](Trial& trial) {
    trial.steps(kFreeze);
    const int64_t before = trial.optimizer().wire_bytes_sent();
    trial.step();
    const int64_t sent = trial.optimizer().wire_bytes_sent() - before;
    // Half of a bit an element, twice, and scales: nothing like 16 bits.
    const int64_t elements = trial.table().size_elements();
    EXPECT_GT(sent, elements / 8 / 2 * 2 - 64);
    EXPECT_LT(sent, 2 * elements / 15);
    return 0;
  });
}

}  // namespace
}  // namespace onebit::optim
