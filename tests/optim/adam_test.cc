#include "onebit/exchange/optim/adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

// The definition, in double precision, with the gradients of trial.h for one rank.
std::vector<double> reference_adam(const AdamOptions& config, const TrialOptions& options,
                                   std::vector<float> start, const std::vector<int64_t>& places,
                                   const ParameterTable& table, int steps) {
  std::vector<double> values(start.begin(), start.end());
  std::vector<double> m(values.size()), v(values.size());
  for (int64_t step = 1; step <= steps; ++step) {
    const double t = static_cast<double>(step);
    const double c1 = config.bias_correction ? 1 - std::pow(config.beta1, t) : 1;
    const double c2 = config.bias_correction ? 1 - std::pow(config.beta2, t) : 1;
    for (const int64_t place : places) {
      const auto i = static_cast<size_t>(place);
      const bool decays = *table.name_at(place) != "bias";
      const double decay = decays ? config.weight_decay : 0;
      double g = options.gradient_scale * options.gradient(0, step, place);
      if (!config.decoupled_decay) g += decay * values[i];
      m[i] = config.beta1 * m[i] + (1 - config.beta1) * g;
      v[i] = config.beta2 * v[i] + (1 - config.beta2) * g * g;
      double update = m[i] / c1 / (std::sqrt(v[i] / c2) + config.epsilon);
      if (config.decoupled_decay) update += decay * values[i];
      values[i] -= options.learning_rate * update;
    }
  }
  return values;
}

void expect_reference(const AdamOptions& config, double gradient_scale) {
  constexpr int kSteps = 20;
  TrialOptions options{.optimizer = adam_recipe(config), .gradient_scale = gradient_scale};
  const auto world = comm::make_single_rank();
  Trial trial(*world, options);
  const std::vector<float> start = trial.values();
  trial.steps(kSteps);
  const std::vector<double> expected =
      reference_adam(config, options, start, trial.places(), trial.table(), kSteps);
  const std::vector<float> found = trial.values();
  // Each step rounds the value once (half an ulp of at most 4) and makes an update of at most a few
  // rates with a relative error of a few ulps.
  const double tolerance = kSteps * 0x1p-24 * (4 + 64 * options.learning_rate);
  for (const int64_t place : trial.places()) {
    const auto i = static_cast<size_t>(place);
    ASSERT_NEAR(found[i], expected[i], tolerance) << "element " << i;
  }
}

TEST(Adam, FollowsTheDefinition) {
  for (const bool correction : {true, false}) {
    for (const bool decoupled : {true, false}) {
      expect_reference(
          {.weight_decay = 0.1, .decoupled_decay = decoupled, .bias_correction = correction}, 1);
    }
  }
}

TEST(Adam, ScalesGradients) {
  expect_reference({.weight_decay = 0.01}, 0.125);
}

TEST(Adam, ZeroGradientsNeverMakeNan) {
  const auto world = comm::make_single_rank();
  TrialOptions options{.optimizer = adam_recipe({.epsilon = 0}),
                       .gradient = [](int, int64_t, int64_t) { return 0.0f; }};
  Trial trial(*world, options);
  const std::vector<float> start = trial.values();
  trial.steps(3);
  EXPECT_EQ(trial.values(), start);
}

TEST(Adam, WritesTheComputeCopy) {
  const auto world = comm::make_single_rank();
  for (const DType compute : {DType::kBF16, DType::kF16}) {
    TrialOptions options{.optimizer = adam_recipe({.weight_decay = 0.1}), .compute = compute};
    Trial trial(*world, options);
    trial.steps(3);
    const Tensor copied = to_cpu_f32(trial.table().compute_values());
    const std::vector<float> values = trial.values();
    for (size_t i = 0; i < values.size(); ++i) {
      const float expected = compute == DType::kBF16 ? static_cast<float>(bf16(values[i]))
                                                     : static_cast<float>(f16(values[i]));
      ASSERT_EQ(copied.data<float>()[i], expected) << i;
    }
  }
}

TEST(Adam, ResumesExactly) {
  const auto world = comm::make_single_rank();
  const TrialOptions options{.optimizer = adam_recipe({.weight_decay = 0.01})};
  Trial unbroken(*world, options), second(*world, options);
  unbroken.steps(5);
  second.load({unbroken.save()}, unbroken.values(), unbroken.next_step());
  unbroken.steps(5);
  second.steps(5);
  EXPECT_EQ(second.values(), unbroken.values());
  EXPECT_EQ(second.save(), unbroken.save());
}

TEST(Adam, RefusesAnothersState) {
  const auto world = comm::make_single_rank();
  Trial adam(*world, {});
  Trial onebit(*world, {.optimizer = onebit_adam_recipe({})});
  try {
    adam.load({onebit.save()}, onebit.values(), 1);
    FAIL() << "the state was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("onebit_adam"), std::string::npos) << error.what();
  }
}

TEST(Adam, ManyRanksMakeOneStep) {
  const TrialOptions options{.optimizer = adam_recipe({.weight_decay = 0.01})};
  for (const int world_size : {2, 3}) {
    const auto values = on_ranks(world_size, options, [](Trial& trial) {
      trial.steps(4);
      return trial.values();
    });
    for (const auto& one : values) EXPECT_EQ(one, values[0]);
  }
}

}  // namespace
}  // namespace onebit::optim
