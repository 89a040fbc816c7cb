#include "onebit/exchange/one_bit/onebit_lamb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/optim/lamb.h"
#include "onebit/ground/base/philox.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 30;

const LambOptions kLamb{.adam = {.weight_decay = 0.1}};

std::vector<float> ratios_of(Trial& trial) {
  const auto& optimizer = dynamic_cast<CompressedOptimizer&>(trial.optimizer());
  return dynamic_cast<const OneBitLambValues&>(optimizer.values()).trust_ratios();
}

float gaussian_noise(int rank, int64_t step, int64_t place) {
  RandomSequence random(17, static_cast<uint64_t>(rank + 1),
                        static_cast<uint64_t>(step * 1000003 + place));
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.uniform()));
}

// Until the freeze, 1-bit LAMB equals LAMB.
TEST(OneBitLamb, WarmsUpAsLamb) {
  const auto world = comm::make_single_rank();
  Trial plain(*world, {.optimizer = lamb_recipe(kLamb)});
  Trial onebit(*world,
               {.optimizer = onebit_lamb_recipe({.lamb = kLamb, .freeze = {.step = kFreeze}})});
  plain.steps(kFreeze);
  onebit.steps(kFreeze);
  EXPECT_EQ(onebit.values(), plain.values());
  EXPECT_EQ(onebit.optimizer().phase(), Phase::kCompressed);
}

// The received signs of a momentum have a norm that is a quarter larger than the momentum's. The
// owner's momentum is longer by a tenth if gradients are noise, as here: the ratios exclude the
// contribution of the workers' signs, too.
TEST(OneBitLamb, RatiosAreThoseOfLamb) {
  constexpr int kWorld = 4, kSteps = 200;
  // Means over the steps: in each, the measure of the noise is off by some percent.
  const auto mean_ratios = [](Trial& trial, const auto& ratios) {
    trial.steps(kFreeze + 9);
    std::vector<double> means(ratios(trial).size());
    for (int step = 0; step < kSteps; ++step) {
      trial.steps(1);
      const std::vector<float> now = ratios(trial);
      for (size_t tensor = 0; tensor < now.size(); ++tensor) means[tensor] += now[tensor] / kSteps;
    }
    return means;
  };
  TrialOptions options{.optimizer = lamb_recipe(kLamb), .gradient = gaussian_noise};
  const auto plain = on_ranks(kWorld, options, [&](Trial& trial) {
    return mean_ratios(
        trial, [](Trial& of) { return dynamic_cast<Lamb&>(of.optimizer()).trust_ratios(); });
  });
  options.optimizer = onebit_lamb_recipe({.lamb = kLamb, .freeze = {.step = kFreeze}});
  const auto onebit =
      on_ranks(kWorld, options, [&](Trial& trial) { return mean_ratios(trial, ratios_of); });
  for (const auto& ratios : onebit) EXPECT_EQ(ratios, onebit[0]);
  for (size_t tensor = 0; tensor < plain[0].size(); ++tensor) {
    EXPECT_NEAR(onebit[0][tensor], plain[0][tensor], 0.03 * plain[0][tensor]) << tensor;
  }
}

// Residuals are correlated with gradients whose few large elements dominate, and with gradients of
// the updates before: the sum of their squares says too little.
TEST(OneBitLamb, StepsHaveTheLengthOfLambsWithHeavyTails) {
  const Gradient heavy = [](int rank, int64_t step, int64_t place) {
    const float size = std::exp(1.2f * gaussian_noise(rank, step + 5000, place / 7));
    const double signal =
        0.05 * std::sin(0.02 * static_cast<double>(step) + static_cast<double>(place));
    return static_cast<float>(signal) + size * gaussian_noise(rank, step, place);
  };
  // The distances that tensors move.
  const auto distances = [](Trial& trial) {
    trial.steps(60);
    const std::vector<float> before = trial.values();
    trial.steps(120);
    const std::vector<float> after = trial.values();
    std::map<std::string, double> squares;
    for (const int64_t place : trial.places()) {
      const auto i = static_cast<size_t>(place);
      squares[*trial.table().name_at(place)] += std::pow(double{after[i]} - before[i], 2);
    }
    return squares;
  };
  for (const int ranks : {2, 8}) {
    TrialOptions options{.optimizer = lamb_recipe({}), .gradient = heavy, .learning_rate = 1e-6};
    const auto plain = on_ranks(ranks, options, distances)[0];
    options.optimizer = onebit_lamb_recipe({.lamb = {}, .freeze = {.step = 40}});
    const auto onebit = on_ranks(ranks, options, distances)[0];
    for (const char* name : {"words", "matrix"}) {
      const double quotient = std::sqrt(onebit.at(name) / plain.at(name));
      EXPECT_NEAR(quotient, 1, 0.02) << name << " of " << ranks << " ranks";
    }
  }
}

TEST(OneBitLamb, HoldsTheRatiosWithinTheirLimits) {
  LambOptions held = kLamb;
  held.min_ratio = held.max_ratio = 0.25;
  const TrialOptions options{.optimizer =
                                 onebit_lamb_recipe({.lamb = held, .freeze = {.step = 3}})};
  const auto ratios = on_ranks(2, options, [](Trial& trial) {
    trial.steps(6);
    return ratios_of(trial);
  });
  EXPECT_EQ(ratios[0], std::vector<float>(3, 0.25f));
}

// Neither optimizer loads the other's checkpoint.
TEST(OneBitLamb, IsNotOneBitAdamInACheckpoint) {
  const OneBitAdamOptions adam{.freeze = {.step = 3}};
  const auto saved = on_ranks(2, {.optimizer = onebit_adam_recipe(adam)}, [](Trial& trial) {
    trial.steps(5);
    return trial.save();
  });
  const TrialOptions options{.optimizer = onebit_lamb_recipe({.freeze = adam.freeze})};
  on_ranks(2, options, [&](Trial& trial) {
    EXPECT_THROW(trial.load({saved[0], saved[1]}, trial.values(), 6), Error);
    return 0;
  });
}

}  // namespace
}  // namespace onebit::optim
