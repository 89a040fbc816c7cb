// What 1-bit Adam measures during the last updates of its warm-up.
#include <gtest/gtest.h>

#include "onebit/optim/onebit_adam.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8;

OptimizerConfig onebit_config() {
  return {.type = OptimizerType::kOneBitAdam, .freeze_step = kFreeze};
}

// Shown its own gradients once a step, by the engine; the average is not one of them.
class CountingOneBitAdam : public OneBitAdam {
 public:
  using OneBitAdam::OneBitAdam;
  void observe_local_gradients(Context& context, const params::Table& table,
                               params::Range range) override {
    ++shown;
    OneBitAdam::observe_local_gradients(context, table, range);
  }
  int shown = 0;
};

TEST(WarmupObservation, IsShownLocalGradientsOnceAStep) {
  for (const int world_size : {1, 2}) {
    on_ranks(world_size, {.optimizer = onebit_config()}, [](Trial& trial) {
      auto made = std::make_unique<CountingOneBitAdam>(onebit_config(), trial.table(),
                                                       trial.communicator(), RunFacts{});
      const CountingOneBitAdam& counting = *made;
      trial.replace_optimizer(std::move(made));
      trial.steps(kFreeze + 2);
      EXPECT_EQ(counting.phase(), Phase::kCompressed);
      EXPECT_EQ(counting.shown, kFreeze);
      return 0;
    });
  }
}

// Where nobody reads a measure it is not taken.
TEST(WarmupObservation, MeasuresOnlyWhatItUses) {
  const auto after_observing = [](Variance variance, int world_size) {
    TrialOptions options{.optimizer = onebit_config()};
    options.optimizer.variance = variance;
    return on_ranks(world_size, options, [](Trial& trial) {
      trial.steps(kFreeze - 1);
      return trial.save();
    })[0];
  };
  EXPECT_TRUE(after_observing(Variance::kLocal, 2).own_buffers.contains("noise_own"));
  EXPECT_TRUE(after_observing(Variance::kLiveLevel, 1).own_buffers.contains("level_reference"));
  // One rank's gradients are the average: there is no share of noise to learn.
  EXPECT_FALSE(after_observing(Variance::kLocal, 1).own_buffers.contains("noise_own"));

  TrialOptions options{.optimizer = onebit_config()};
  const auto state_bytes = [&](Variance variance) {
    options.optimizer.variance = variance;
    return on_ranks(1, options, [](Trial& trial) { return trial.optimizer().state_bytes(); })[0];
  };
  EXPECT_LT(state_bytes(Variance::kFrozen), state_bytes(Variance::kLiveLevel));
}

}  // namespace
}  // namespace onebit::optim
