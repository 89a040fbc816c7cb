// The engine measures local gradients in the last updates of the warm-up, for clipping.
#include <gtest/gtest.h>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

TEST(WarmupObservation, LastsFiftyUpdates) {
  TrialOptions options{.optimizer = onebit_adam_recipe({.freeze = {.step = 60}})};
  on_ranks(1, options, [](Trial& trial) {
    for (int step = 1; step <= 62; ++step) {
      EXPECT_EQ(trial.optimizer().observes_local_gradients(), step > 10 && step <= 60) << step;
      trial.step();
    }
    return 0;
  });
}

}  // namespace
}  // namespace onebit::optim
