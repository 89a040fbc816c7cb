// A small training whose gradients grow after an early freeze: linear regression on noisy
// mini-batches of four ranks, whose inputs grow fiftyfold after the freeze. With a frozen variance,
// as in DeepSpeed, updates grow with the gradients and diverge in 1-bit Adam, 1-bit LAMB and 0/1
// Adam. A variance that is still updated limits them like Adam.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/lamb.h"
#include "onebit/ground/base/philox.h"
#include "tests/deepspeed/onebit_adam.h"
#include "tests/deepspeed/onebit_lamb.h"
#include "tests/deepspeed/zero_one_adam.h"

namespace onebit::deepspeed {
namespace {

constexpr int64_t kOutputs = 16, kInputs = 24, kSamples = 8;
constexpr int kWorld = 4, kSteps = 600;
constexpr double kRate = 0.05, kNoise = 0.1;

double solution(int64_t output, int64_t input) {
  return std::cos(0.7 * static_cast<double>(output * kInputs + input));
}

double input_size(int64_t step) {
  return 1 + 49 * std::clamp((static_cast<double>(step) - 60) / 100, 0.0, 1.0);
}

class Regression {
 public:
  explicit Regression(ParameterTable& table)
      : table_(table), weight_(table.add({.name = "weight", .shape = {kOutputs, kInputs}})) {}

  // Mean squared distance to the solution.
  double distance() const {
    const float* weight = table_.value(weight_).data<float>();
    double sum = 0;
    for (int64_t i = 0; i < kOutputs * kInputs; ++i) {
      sum += std::pow(weight[i] - solution(i / kInputs, i % kInputs), 2);
    }
    return sum / (kOutputs * kInputs);
  }

  // The gradient of the mean squared error over a mini-batch of this rank.
  void make_gradient(int rank, int64_t step) {
    RandomSequence random(3, static_cast<uint64_t>(rank + 1), static_cast<uint64_t>(step));
    const float* weight = table_.value(weight_).data<float>();
    float* gradient = table_.gradient(weight_).data<float>();
    std::fill_n(gradient, kOutputs * kInputs, 0.0f);
    const double size = input_size(step);
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      double inputs[kInputs];
      for (double& input : inputs) input = size * (2 * random.uniform() - 1);
      for (int64_t output = 0; output < kOutputs; ++output) {
        double error = kNoise * size * (2 * random.uniform() - 1);
        for (int64_t i = 0; i < kInputs; ++i) {
          error += (weight[output * kInputs + i] - solution(output, i)) * inputs[i];
        }
        for (int64_t i = 0; i < kInputs; ++i) {
          gradient[output * kInputs + i] += static_cast<float>(error * inputs[i] / kSamples);
        }
      }
    }
  }

 private:
  ParameterTable& table_;
  int weight_;
};

void average(comm::Communicator& communicator, const ParameterTable& table) {
  const std::span<float> gradients(table.gradients().data<float>(),
                                   static_cast<size_t>(table.size_elements()));
  communicator.all_reduce(gradients, comm::Reduction::kSum);
  for (float& one : gradients) one /= kWorld;
}

using MakeOptimizer =
    std::function<std::unique_ptr<optim::Optimizer>(const ParameterTable&, comm::Communicator&)>;

double final_distance(const MakeOptimizer& make) {
  double result = 0;
  comm::run_thread_world(kWorld, [&](comm::Communicator& communicator) {
    Context context = Context::cpu(1);
    ParameterTable table;
    Regression regression(table);
    table.allocate(Device{}, DType::kF32);
    const auto optimizer = make(table, communicator);
    for (int64_t step = 1; step <= kSteps; ++step) {
      regression.make_gradient(communicator.rank(), step);
      if (optimizer->gradient_need() == optim::GradientNeed::kAveragedOverRanks) {
        average(communicator, table);
      }
      const double left = 1 - static_cast<double>(step) / kSteps;
      optimizer->step(context, table, {.step = step, .learning_rate = kRate * left});
    }
    if (communicator.rank() == 0) result = regression.distance();
  });
  return result;
}

MakeOptimizer of_recipe(std::shared_ptr<const optim::OptimizerRecipe> recipe) {
  return [recipe](const ParameterTable& table, comm::Communicator& communicator) {
    return recipe->make(table, communicator, {});
  };
}

template <typename Optimizer, typename Options>
MakeOptimizer of_deepspeed(const Options& options) {
  return [options](const ParameterTable& table, comm::Communicator& communicator) {
    return std::make_unique<Optimizer>(options, table, communicator);
  };
}

constexpr double kStart = 0.5;  // the mean of cos^2

TEST(GrowingGradients, SurviveAnEarlyFreeze) {
  EXPECT_LT(final_distance(of_recipe(optim::adam_recipe({}))), 1e-3 * kStart);
  EXPECT_LT(final_distance(of_recipe(optim::onebit_adam_recipe({.freeze = {.step = 50}}))),
            1e-2 * kStart);
}

TEST(GrowingGradients, DivergeWhereTheVarianceIsFrozen) {
  EXPECT_GT(final_distance(of_deepspeed<OneBitAdam>(OneBitAdamOptions{.freeze_step = 51})),
            100 * kStart);
}

constexpr optim::ZeroOneOptions kSchedule{
    .variance_freeze = 50, .variance_scaler = 16, .local_scaler = 100, .local_limit = 4};

TEST(GrowingGradients, SurviveLocalUpdates) {
  EXPECT_LT(final_distance(of_recipe(optim::zero_one_adam_recipe({.schedule = kSchedule}))),
            2e-2 * kStart);
}

TEST(GrowingGradients, DivergeInDeepSpeedsLocalUpdates) {
  const ZeroOneAdamOptions options{.variance_freeze = kSchedule.variance_freeze,
                                   .variance_scaler = kSchedule.variance_scaler,
                                   .local_scaler = kSchedule.local_scaler,
                                   .local_limit = kSchedule.local_limit};
  EXPECT_GT(final_distance(of_deepspeed<ZeroOneAdam>(options)), 100 * kStart);
}

// The correction of a frozen ratio is limited to factor_min, while updates grow fiftyfold. LAMB's
// own ratio cancels their length.
TEST(GrowingGradients, SurviveWhereTrustRatiosAreComputed) {
  EXPECT_LT(final_distance(of_recipe(optim::lamb_recipe({}))), 1e-3 * kStart);
  EXPECT_LT(final_distance(of_recipe(optim::onebit_lamb_recipe({.freeze = {.step = 50}}))),
            1e-2 * kStart);
}

TEST(GrowingGradients, DivergeWhereTrustRatiosAreFrozen) {
  EXPECT_GT(final_distance(of_deepspeed<OneBitLamb>(OneBitLambOptions{.freeze_step = 51})),
            100 * kStart);
}

}  // namespace
}  // namespace onebit::deepspeed
