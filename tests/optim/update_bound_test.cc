// What no optimizer may do to a single element, whatever its gradients: in the patterns here Adam's
// largest update is 3 learning rates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "onebit/ground/base/philox.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr double kRate = 1e-4, kMost = 6;
constexpr int kWarmup = 16;
// The row "words"[10] and ten elements of "matrix".
constexpr Range kRow{960, 1056}, kTen{5000, 5010};

double normal(int rank, int64_t step, int64_t place) {
  RandomSequence random(5, static_cast<uint64_t>(rank + 1),
                        static_cast<uint64_t>(step * 1000003 + place));
  const double size = std::sqrt(-2 * std::log(random.uniform() + 1e-12));
  return size * std::cos(2 * std::numbers::pi * random.uniform());
}

// Noise around a mean of a third of it, of the same size everywhere.
float usual(int rank, int64_t step, int64_t place) {
  return noisy_gradient(rank, step, place * 5);
}

std::vector<std::pair<const char*, std::shared_ptr<const OptimizerRecipe>>> optimizers() {
  const auto zero_one = [](const ZeroOneOptions& schedule) {
    return zero_one_adam_recipe({.adam = {}, .schedule = schedule});
  };
  return {
      {"Adam", adam_recipe({})},
      {"1-bit Adam", onebit_adam_recipe({.adam = {}, .freeze = {.step = kWarmup}})},
      {"0/1 Adam, one bit", zero_one({.variance_freeze = 100000, .variance_scaler = kWarmup})},
      {"0/1 Adam, local",
       zero_one(
           {.variance_freeze = 40, .variance_scaler = 8, .local_scaler = 30, .local_limit = 4})},
      // DeepSpeed's own test of 0/1 Adam.
      {"0/1 Adam, of one average",
       zero_one({.variance_freeze = 4, .variance_scaler = 1, .local_scaler = 1, .local_limit = 2})},
  };
}

// The largest change of an element in learning rates, in the updates that an exchange makes.
double largest_update(const Gradient& gradient, std::shared_ptr<const OptimizerRecipe> optimizer,
                      int world_size, int steps) {
  const TrialOptions options{
      .optimizer = std::move(optimizer), .gradient = gradient, .learning_rate = kRate};
  return on_ranks(world_size, options, [&](Trial& trial) {
    double largest = 0;
    int updates = 0;
    std::vector<float> before = trial.common_values();
    for (int step = 1; step <= steps; ++step) {
      trial.step();
      ++updates;
      std::vector<float> after = trial.common_values();
      double change = 0;
      for (size_t i = 0; i < after.size(); ++i) {
        change = std::max(change, std::abs(double{after[i]} - double{before[i]}));
      }
      if (change == 0) continue;  // between exchanges
      largest = std::max(largest, change / (updates * kRate));
      updates = 0;
      before = std::move(after);
    }
    return largest;
  })[0];
}

void expect_bounded(const char* pattern, const Gradient& gradient, int steps) {
  for (const auto& [name, optimizer] : optimizers()) {
    for (const int world_size : {2, 8}) {
      EXPECT_LE(largest_update(gradient, optimizer, world_size, steps), kMost)
          << pattern << ", " << name << ", " << world_size << " ranks";
    }
  }
}

TEST(UpdateBound, RowsOfRareWords) {
  const Gradient rare = [](int rank, int64_t step, int64_t place) {
    const int64_t row = place / 96;
    RandomSequence occurs(9, static_cast<uint64_t>(rank + 1),
                          static_cast<uint64_t>(step * 64 + row));
    if (row >= 10 && row < 40 && occurs.uniform() > 0.01) return 0.0f;
    return static_cast<float>(1e-3 * normal(rank, step, place));
  };
  expect_bounded("rare words", rare, 300);
}

TEST(UpdateBound, EntriesWhoseGradientsAreTinyAtFirst) {
  for (const Range part : {kRow, kTen}) {
    for (const double size : {1e-1, 1e-3, 1e-5}) {
      const Gradient wakes = [part, size](int rank, int64_t step, int64_t place) {
        const bool inside = place >= part.begin && place < part.end;
        const float noise = usual(rank, step, place);
        if (!inside) return noise;
        // From step 61 on all ranks agree.
        return step <= 60 ? static_cast<float>(size) * noise : 0.5f + 0.1f * noise;
      };
      expect_bounded("tiny at first", wakes, 100);
    }
  }
}

// The growing gradients have all signs, or one.
TEST(UpdateBound, AllGradientsGrowAtOnce) {
  for (const float growth : {10.0f, 100.0f, 1e4f}) {
    for (const float mean : {0.0f, 0.7f}) {
      const Gradient grows = [growth, mean](int rank, int64_t step, int64_t place) {
        const float noise = usual(rank, step, place);
        return step <= 60 ? noise : growth * (mean + (1 - mean) * noise);
      };
      expect_bounded("growth", grows, 100);
    }
  }
}

// Adam's updates reach 6.8 then, of gradients of one sign: (1 - 0.9^t) / sqrt(1 - 0.999^t).
TEST(UpdateBound, WithoutBiasCorrection) {
  const AdamOptions adam{.weight_decay = 0.01, .bias_correction = false};
  const double most = (1 - 0.9) / std::sqrt((1 - 0.999) * (1 - 0.9 * 0.9 / 0.999));
  for (const auto& optimizer : {onebit_adam_recipe({.adam = adam, .freeze = {.step = 2}}),
                                zero_one_adam_recipe({.adam = adam,
                                .schedule = {.variance_freeze = 4,
                                            .variance_scaler = 1,
                                            .local_scaler = 1,
                                            .local_limit = 2}}),
                                zero_one_adam_recipe({.adam = adam,
                                .schedule = {.variance_freeze = 100000, .variance_scaler = 16}})}) {
    for (const float noise : {0.1f, 1.0f}) {
      const Gradient gradient = [noise](int rank, int64_t step, int64_t place) {
        return 0.7f + noise * static_cast<float>(normal(rank, step, place));
      };
      EXPECT_LE(largest_update(gradient, optimizer, 2, 80), 1.01 * most) << noise;
    }
  }
}

TEST(UpdateBound, HeavyTails) {
  const Gradient student = [](int rank, int64_t step, int64_t place) {
    const double a = normal(rank, step + 9000, place), b = normal(rank, step + 18000, place);
    return static_cast<float>(normal(rank, step, place) / std::sqrt((a * a + b * b) / 2 + 1e-9));
  };
  expect_bounded("Student's t with two degrees", student, 60);
  const Gradient log_normal = [](int rank, int64_t step, int64_t place) {
    const double size = std::exp(2 * normal(rank, step + 5000, place / 7));
    return static_cast<float>(size * normal(rank, step, place));
  };
  expect_bounded("log-normal rows", log_normal, 60);
}

struct Moved {
  double spikes = 0, beside = 0, elsewhere = 0;
};

// Root mean squares of the movement in the 200 updates after update 50, in which rank 1 has spikes
// in kTen and with `skipped` NaN in another block.
Moved moved_after_spikes(std::shared_ptr<const OptimizerRecipe> optimizer, float spike,
                         bool skipped) {
  const Gradient gradient = [=](int rank, int64_t step, int64_t place) {
    const bool now = step == 50 && rank == 1;
    if (now && skipped && place == 5) return std::numeric_limits<float>::quiet_NaN();
    if (now && place >= kTen.begin && place < kTen.end) return spike;
    return usual(rank, step, place);
  };
  const TrialOptions options{
      .optimizer = std::move(optimizer), .gradient = gradient, .learning_rate = kRate};
  return on_ranks(2, options, [&](Trial& trial) {
    trial.steps(49);
    EXPECT_EQ(trial.step().applied, !skipped);
    if (skipped) trial.pass_over();
    const std::vector<float> before = trial.common_values();
    trial.steps(200);
    const std::vector<float> after = trial.common_values();
    const auto moved = [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        sum += std::pow(double{after[i]} - double{before[i]}, 2);
      }
      return std::sqrt(sum / static_cast<double>(end - begin)) / kRate;
    };
    return Moved{.spikes = moved(kTen.begin, kTen.end),
                 .beside = moved(5010, 5110),
                 .elsewhere = moved(7000, 8000)};
  })[0];
}

TEST(UpdateBound, EntriesBesideASpikeMoveAsWithAdam) {
  for (const float spike : {30.0f, 1e3f, 1e6f}) {
    const Moved adam = moved_after_spikes(optimizers()[0].second, spike, false);
    for (const size_t one : {1, 2}) {
      const auto [name, optimizer] = optimizers()[one];
      const Moved moved = moved_after_spikes(optimizer, spike, false);
      EXPECT_GE(moved.beside, 0.9 * adam.beside) << name << ", " << spike;
      EXPECT_LE(moved.beside, 1.15 * adam.beside) << name << ", " << spike;
    }
  }
}

TEST(UpdateBound, SpikesOfASkippedUpdateDoNotSlowTheirNeighbours) {
  for (const size_t one : {1, 2}) {
    const auto [name, optimizer] = optimizers()[one];
    const Moved without = moved_after_spikes(optimizer, 1, true);
    for (const float spike : {1e3f, 1e6f, 1e10f}) {
      const Moved moved = moved_after_spikes(optimizer, spike, true);
      EXPECT_NEAR(moved.beside / without.beside, 1, 0.1) << name << ", " << spike;
    }
  }
}

}  // namespace
}  // namespace onebit::optim
