// The whole of 1-bit Adam and of 1-bit LAMB at four ranks, on one level and on two, against their
// restatement.
#include <gtest/gtest.h>

#include <algorithm>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "tests/one_bit/restatement.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8, kSteps = kFreeze + 40;
constexpr double kDecay = Restatement::kDecay;

enum class Rule { kAdam, kLamb };

// The node that keeps each element's momentum.
std::vector<int> owners_of(const TrialOptions& options, const comm::Nodes& nodes) {
  const auto owned = on_ranks(Restatement::kWorld, options, [](Trial& trial) {
    return dynamic_cast<CompressedOptimizer&>(trial.optimizer()).momentum().owned_ranges();
  });
  std::vector<int> owners;
  for (size_t rank = 0; rank < owned.size(); ++rank) {
    for (const auto& [range, place] : owned[rank]) {
      owners.resize(std::max(owners.size(), static_cast<size_t>(range.end)), -1);
      std::fill(owners.begin() + range.begin, owners.begin() + range.end,
                nodes.node_of(static_cast<int>(rank)));
    }
  }
  return owners;
}

// `nodes`: of each rank, for two levels, or empty for one.
void expect_restatement(Rule rule, const std::vector<int>& nodes = {}) {
  const OneBitAdamOptions onebit{.adam = {.weight_decay = kDecay}, .freeze = {.step = kFreeze}};
  const bool lamb = rule == Rule::kLamb;
  TrialOptions options{.optimizer = onebit_adam_recipe(onebit)};
  if (lamb) {
    options.optimizer =
        onebit_lamb_recipe({.lamb = {.adam = onebit.adam}, .freeze = onebit.freeze});
  }
  TrialElements elements = TrialElements::of(options, lamb);
  if (!nodes.empty()) options = on_two_levels(options, nodes);
  const auto found = on_ranks(Restatement::kWorld, options, [](Trial& trial) {
    trial.steps(kSteps);
    return trial.values();
  });
  const comm::Nodes placed(nodes.empty() ? std::vector<int>{0, 1, 2, 3} : nodes);
  if (lamb) elements.owners = owners_of(options, placed);
  const int sources = placed.count();
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
