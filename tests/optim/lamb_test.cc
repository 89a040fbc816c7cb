#include "onebit/exchange/optim/lamb.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "tests/base/message_of.h"
#include "tests/optim/trial.h"
#include "tests/reference/lamb.h"

namespace onebit::optim {
namespace {

// Twenty steps of a trial, tensor by tensor, in double precision, with the gradients of trial.h for
// one rank. Returns values and the ratios of every step.
struct Followed {
  std::vector<double> values;
  std::vector<std::vector<double>> ratios;
};
Followed follow(const LambOptions& config, const TrialOptions& options, const ParameterTable& table,
                const std::vector<float>& start, int steps) {
  Followed result{{start.begin(), start.end()}, std::vector<std::vector<double>>(size_t(steps))};
  for (const ParameterEntry& entry : table.entries()) {
    const auto count = static_cast<size_t>(entry.shape.elements());
    const auto begin = result.values.begin() + entry.offset_elements;
    reference::LambTensorState state{{begin, begin + static_cast<int64_t>(count)},
                                     std::vector<double>(count),
                                     std::vector<double>(count)};
    const reference::Lamb rule{.beta1 = config.adam.beta1,
                               .beta2 = config.adam.beta2,
                               .epsilon = config.adam.epsilon,
                               .epsilon_inside_root = config.epsilon_inside_root,
                               .weight_decay = entry.name == "bias" ? 0 : config.adam.weight_decay,
                               .learning_rate = options.learning_rate,
                               .min_ratio = config.min_ratio,
                               .max_ratio = config.max_ratio};
    for (int step = 1; step <= steps; ++step) {
      std::vector<double> gradient(count);
      for (size_t i = 0; i < count; ++i) {
        gradient[i] = options.gradient_scale *
                      options.gradient(0, step, entry.offset_elements + static_cast<int64_t>(i));
      }
      const auto factor = [&](double beta) {
        return config.adam.bias_correction ? 1 / (1 - std::pow(beta, step)) : 1;
      };
      result.ratios[static_cast<size_t>(step - 1)].push_back(
          reference::lamb_step(rule, state, gradient, factor(rule.beta1), factor(rule.beta2)));
    }
    std::copy(state.value.begin(), state.value.end(), begin);
  }
  return result;
}

// Returns the ratios of "words", "matrix" and "bias" in each step.
std::vector<std::vector<double>> expect_reference(const LambOptions& config,
                                                  TrialOptions options = {}) {
  constexpr int kSteps = 20;
  options.optimizer = lamb_recipe(config);
  const auto world = comm::make_single_rank();
  Trial trial(*world, options);
  const Followed expected = follow(config, options, trial.table(), trial.values(), kSteps);
  for (int step = 0; step < kSteps; ++step) {
    trial.step();
    const auto found = dynamic_cast<Lamb&>(trial.optimizer()).trust_ratios();
    const std::vector<double>& wanted = expected.ratios[static_cast<size_t>(step)];
    EXPECT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5 * wanted[i]);
  }
  const std::vector<float> found = trial.values();
  // Each step rounds the value once (half an ulp of at most 4) and makes an update of at most a few
  // rates times the largest ratio with a relative error of a few ulps.
  const double tolerance = kSteps * 0x1p-24 * (4 + 64 * options.learning_rate * config.max_ratio);
  for (const int64_t place : trial.places()) {
    const auto i = static_cast<size_t>(place);
    EXPECT_NEAR(found[i], expected.values[i], tolerance) << "element " << i;
    if (testing::Test::HasFailure()) break;
  }
  return expected.ratios;
}

TEST(Lamb, FollowsTheDefinition) {
  for (const bool correction : {true, false}) {
    for (const bool inside : {true, false}) {
      const auto ratios = expect_reference({.adam = {.epsilon = inside ? 1e-6 : 1e-8,
                                                     .weight_decay = 0.1,
                                                     .bias_correction = correction},
                                            .epsilon_inside_root = inside});
      EXPECT_EQ(ratios[0][2], 1);  // the bias starts at zero
      EXPECT_LT(ratios[1][2], 0.1);
    }
  }
}

TEST(Lamb, HoldsTheRatioWithinItsLimits) {
  const auto low = expect_reference({.adam = {.weight_decay = 0.1}, .min_ratio = 0.9});
  const auto high = expect_reference({.adam = {.weight_decay = 0.1}, .max_ratio = 0.3});
  for (const size_t tensor : {0, 1}) {
    EXPECT_EQ(low[1][tensor], 0.9);
    EXPECT_EQ(high[1][tensor], 0.3);
  }
  const auto fixed = expect_reference({.min_ratio = 1, .max_ratio = 1});
  for (const auto& step : fixed) EXPECT_EQ(step, std::vector<double>(3, 1.0));
}

TEST(Lamb, ScalesGradients) {
  expect_reference({.adam = {.weight_decay = 0.01}}, {.gradient_scale = 0.125});
}

// With ratios of 1 it is AdamW.
TEST(Lamb, WithoutRatiosIsAdam) {
  const auto world = comm::make_single_rank();
  const AdamOptions adam{.weight_decay = 0.1};
  Trial plain(*world, {.optimizer = adam_recipe(adam)});
  Trial lamb(*world, {.optimizer = lamb_recipe({.adam = adam, .min_ratio = 1, .max_ratio = 1})});
  plain.steps(20);
  lamb.steps(20);
  const auto one = plain.values(), other = lamb.values();
  for (const int64_t place : plain.places()) {
    const auto i = static_cast<size_t>(place);
    ASSERT_NEAR(one[i], other[i], 20 * 0x1p-24 * (4 + 64 * 1e-3)) << i;
  }
}

// DeepSpeed's two warm-up steps of 1-bit LAMB, which are its LAMB without bias correction. There
// are two tensors, and their gradients are the mean of two ranks.
TEST(Lamb, FollowsDeepSpeed) {
  ParameterTable table;
  table.add({.name = "four", .shape = {4}, .decay = true});
  table.add({.name = "three", .shape = {3}, .decay = true});
  table.allocate(Device{}, DType::kF32);
  const auto place = [&](int index) {
    return index < 4 ? index : table.entry("three").offset_elements + index - 4;
  };
  float* values = table.values().data<float>();
  float* gradients = table.gradients().data<float>();
  for (int i = 0; i < 7; ++i) {
    values[place(i)] = static_cast<float>(i < 4 ? 0.5 - 0.25 * i : 0.6 - 0.25 * (i - 4));
  }
  Lamb lamb({.adam = {.weight_decay = 0.01, .bias_correction = false}}, table);
  Context context = Context::cpu(1);
  const double golden[2][7] = {
      {.49693456, .24693691, .0030606605, -.25305825, .6040447, .34594314, .095946327},
      {.49332446, .24514428, .00060633216, -.25692179, .60865083, .34155526, .09296215}};
  const double coefficients[2][2] = {{.096787086, .12814802}, {.10398298, .10854458}};
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < 7; ++i) {
      const int turn = (i + 1) * (step + 2) % 5 - 2;
      gradients[place(i)] = static_cast<float>(0.1 * turn + 0.013 * (i + 1));
    }
    lamb.step(context, table, {.step = step + 1, .learning_rate = 1e-2});
    for (int i = 0; i < 7; ++i) EXPECT_NEAR(values[place(i)], golden[step][i], 1e-7) << i;
    for (size_t tensor = 0; tensor < 2; ++tensor) {
      EXPECT_NEAR(lamb.trust_ratios()[tensor], coefficients[step][tensor], 1e-6);
    }
  }
}

// Query, key and value are one matrix for the layer, three tensors for files and for LAMB.
TEST(Lamb, PartsOfAFusedMatrixHaveRatiosOfTheirOwn) {
  const auto ratios_of = [](bool fused) {
    ParameterTable table;
    if (fused) {
      table.add({.name = "qkv", .shape = {9, 7}, .decay = true, .parts = {"q", "k", "v"}});
    } else {
      for (const char* name : {"q", "k", "v"}) {
        table.add({.name = name, .shape = {3, 7}, .decay = true});
      }
    }
    table.allocate(Device{}, DType::kF32);
    for (const ParameterEntry& entry : table.entries()) {
      for (int i = 0; i < 21; ++i) {
        const float size = entry.name == "q" ? 1 : entry.name == "k" ? 2 : 4;
        table.value_of(entry).data<float>()[i] = size * std::sin(static_cast<float>(i));
        table.gradient_of(entry).data<float>()[i] = std::cos(static_cast<float>(i));
      }
    }
    Lamb lamb({.adam = {.weight_decay = 0.01}}, table);
    Context context = Context::cpu(1);
    lamb.step(context, table, {.step = 1, .learning_rate = 1e-2});
    return lamb.trust_ratios();
  };
  const auto fused = ratios_of(true);
  ASSERT_EQ(fused.size(), 3u);
  EXPECT_GT(fused[1], 1.9f * fused[0]);
  EXPECT_GT(fused[2], 1.9f * fused[1]);
  EXPECT_EQ(fused, ratios_of(false));
}

TEST(Lamb, WritesTheComputeCopy) {
  const auto world = comm::make_single_rank();
  TrialOptions options{.optimizer = lamb_recipe({.adam = {.weight_decay = 0.1}}),
                       .compute = DType::kBF16};
  Trial trial(*world, options);
  trial.steps(3);
  const Tensor copied = to_cpu_f32(trial.table().compute_values());
  const std::vector<float> values = trial.values();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(copied.data<float>()[i], static_cast<float>(bf16(values[i]))) << i;
  }
}

TEST(Lamb, ResumesExactly) {
  const auto world = comm::make_single_rank();
  const TrialOptions options{.optimizer = lamb_recipe({.adam = {.weight_decay = 0.01}})};
  Trial unbroken(*world, options), second(*world, options);
  unbroken.steps(5);
  second.load({unbroken.save()}, unbroken.values(), unbroken.next_step());
  unbroken.steps(5);
  second.steps(5);
  EXPECT_EQ(second.values(), unbroken.values());
  EXPECT_EQ(second.save(), unbroken.save());
}

TEST(Lamb, RefusesAnothersState) {
  const auto world = comm::make_single_rank();
  Trial lamb(*world, {.optimizer = lamb_recipe({})});
  Trial adam(*world, {});
  const std::string error = message_of([&] { lamb.load({adam.save()}, adam.values(), 1); });
  EXPECT_NE(error.find("the state of the optimizer adam, but the recipe selects lamb"),
            std::string::npos)
      << error;
}

TEST(Lamb, ManyRanksMakeOneStep) {
  const TrialOptions options{.optimizer = lamb_recipe({.adam = {.weight_decay = 0.01}})};
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
