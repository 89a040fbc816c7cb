// Loading a checkpoint into an optimizer that has already made updates replaces its whole state.
#include "onebit/exchange/one_bit/compressed_optimizer.h"

#include <gtest/gtest.h>

#include "tests/optim/two_levels.h"

namespace onebit::optim {
namespace {

// Continues from a checkpoint in an optimizer that has already made `own` updates.
Saved continued(const Saved& saved, int at, int own, int ranks, const TrialOptions& options) {
  const auto ends = on_ranks(ranks, options, [&](Trial& trial) {
    trial.steps(own);
    trial.load(saved.states, saved.values, at + 1);
    trial.steps(kSteps - at);
    return std::pair(trial.save(), trial.common_values());
  });
  Saved end{.states = {}, .values = ends[0].second};
  for (const auto& [state, values] : ends) end.states.push_back(state);
  return end;
}

void expect_equal(const Saved& found, const Saved& expected, const std::string& where) {
  EXPECT_EQ(found.values, expected.values) << where;
  EXPECT_EQ(found.states, expected.states) << where;
}

// 23 updates end in the middle of a cycle of nine, and of 0/1 Adam's local updates.
constexpr int kOwn = 23;

TEST(CompressedOptimizer, LoadsIntoAUsedOneAsIntoAFreshOne) {
  for (const Layout& layout : {Layout{3, {}}, Layout{4, {0, 0, 1, 1}}}) {
    for (const Recipe& recipe : variants()) {
      const TrialOptions options = layout.options(recipe);
      for (const int at : {3, 15}) {
        const Saved saved = saved_after(at, layout.ranks, options);
        expect_equal(continued(saved, at, kOwn, layout.ranks, options),
                     continued(saved, at, 0, layout.ranks, options),
                     fmt::format("update {} on {} ranks", at, layout.ranks));
      }
    }
  }
}

// One rank exchanges nothing, and has no counters of exchanges to continue with.
TEST(CompressedOptimizer, ResumesExactlyOnOneRank) {
  for (const Recipe& recipe : variants()) {
    const TrialOptions options{.optimizer = recipe};
    for (const int at : {3, 15}) {
      expect_equal(continued(saved_after(at, 1, options), at, 0, 1, options),
                   saved_after(kSteps, 1, options), fmt::format("update {}", at));
    }
  }
}

// Sums of an unfinished cycle of other ranks are dropped, and so are this optimizer's own.
TEST(CompressedOptimizer, LoadsWhatOtherRanksSavedAsAFreshOneDoes) {
  for (const Recipe& recipe : variants()) {
    const TrialOptions options{.optimizer = recipe};
    const Saved saved = saved_after(15, 2, options);
    expect_equal(continued(saved, 15, kOwn, 3, options), continued(saved, 15, 0, 3, options),
                 "from 2 ranks on 3");
  }
}

// A warm-up after a compressed phase saves no more state than any other warm-up, so the next
// compressed phase must not start with more either.
TEST(CompressedOptimizer, ResumesAWarmUpAfterACompressedPhaseExactly) {
  constexpr int kAt = 15, kMore = 3;
  OneBitAdamOptions later = onebit_options();
  later.freeze.step = kAt + 5;
  const TrialOptions before{.optimizer = onebit_adam()},
      after{.optimizer = onebit_adam_recipe(later)};
  const Saved saved = saved_after(kAt, 3, before);
  const auto unbroken = on_ranks(3, after, [&](Trial& trial) {
    trial.load(saved.states, saved.values, kAt + 1);
    EXPECT_EQ(trial.optimizer().phase(), Phase::kWarmup);
    trial.steps(kMore);
    Saved end{.states = {trial.save()}, .values = trial.values()};
    trial.steps(kSteps - kAt - kMore);
    return std::pair(end, trial.values());
  });
  Saved middle{.states = {}, .values = unbroken[0].first.values};
  for (const auto& [end, values] : unbroken) middle.states.push_back(end.states[0]);
  const Saved resumed = continued(middle, kAt + kMore, 0, 3, after);
  EXPECT_EQ(resumed.values, unbroken[0].second);
}

}  // namespace
}  // namespace onebit::optim
