// The whole of 1-bit Adam and of 1-bit LAMB at four ranks, on one level and on two, against their
// restatement.
#include <gtest/gtest.h>

#include "onebit/optim/onebit_adam.h"
#include "onebit/optim/onebit_lamb.h"
#include "tests/optim/restatement.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8, kSteps = kFreeze + 40;
constexpr double kDecay = Restatement::kDecay;

enum class Rule { kAdam, kLamb };

// `nodes`: of each rank, two levels; empty: one.
void expect_restatement(Rule rule, const std::vector<int>& nodes = {}) {
  const OneBitAdamOptions onebit{.adam = {.weight_decay = kDecay}, .freeze = {.step = kFreeze}};
  const bool lamb = rule == Rule::kLamb;
  TrialOptions options{.optimizer = onebit_adam_recipe(onebit)};
  if (lamb) {
    options.optimizer =
        onebit_lamb_recipe({.lamb = {.adam = onebit.adam}, .freeze = onebit.freeze});
  }
  const TrialElements elements = TrialElements::of(options, lamb);
  if (!nodes.empty()) options = on_two_levels(options, nodes);
  const auto found = on_ranks(Restatement::kWorld, options, [](Trial& trial) {
    trial.steps(kSteps);
    return trial.values();
  });
  const int sources = nodes.empty() ? Restatement::kWorld : comm::Nodes(nodes).count();
  Restatement expected(elements, kFreeze, sources);
  for (int64_t step = 1; step <= kSteps; ++step) expected.step(step);
  expect_close(elements, expected.values(), found[0], 0.01);
}

TEST(OneBitReference, AdamOfFourRanksFollowsTheRestatement) {
  expect_restatement(Rule::kAdam);
}

TEST(OneBitReference, LambOfFourRanksFollowsTheRestatement) {
  expect_restatement(Rule::kLamb);
}

TEST(OneBitReference, AdamOnTwoLevelsFollowsTheRestatement) {
  expect_restatement(Rule::kAdam, {0, 0, 1, 1});
}

TEST(OneBitReference, LambOnTwoLevelsFollowsTheRestatement) {
  expect_restatement(Rule::kLamb, {0, 0, 1, 1});
}

}  // namespace
}  // namespace onebit::optim
