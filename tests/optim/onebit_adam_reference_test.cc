// The whole of 1-bit Adam and of 1-bit LAMB at four ranks against their restatement.
#include <gtest/gtest.h>

#include "onebit/optim/onebit_adam.h"
#include "onebit/optim/onebit_lamb.h"
#include "tests/optim/restatement.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8, kSteps = kFreeze + 40;
constexpr double kDecay = Restatement::kDecay;

void expect_restatement(std::shared_ptr<const OptimizerRecipe> optimizer, bool lamb) {
  const TrialOptions options{.optimizer = std::move(optimizer)};
  const auto found = on_ranks(Restatement::kWorld, options, [](Trial& trial) {
    trial.steps(kSteps);
    return trial.values();
  });
  const TrialElements elements = TrialElements::of(options, lamb);
  Restatement expected(elements, kFreeze);
  for (int64_t step = 1; step <= kSteps; ++step) expected.step(step);
  expect_close(elements, expected.values(), found[0], 0.01);
}

TEST(OneBitReference, AdamOfFourRanksFollowsTheRestatement) {
  expect_restatement(
      onebit_adam_recipe({.adam = {.weight_decay = kDecay}, .freeze = {.step = kFreeze}}), false);
}

TEST(OneBitReference, LambOfFourRanksFollowsTheRestatement) {
  expect_restatement(onebit_lamb_recipe({.lamb = {.adam = {.weight_decay = kDecay}},
                                         .onebit = {.freeze = {.step = kFreeze}}}),
                     true);
}

}  // namespace
}  // namespace onebit::optim
