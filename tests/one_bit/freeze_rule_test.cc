#include "onebit/exchange/one_bit/freeze_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/optim/memory_state.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr double kBeta2 = 0.99;  // a tenth of its memory is ten updates

FreezeOptions automatic(int64_t window) {
  return {.step = std::nullopt, .window = window};
}

// Feeds variances of a given norm until the rule freezes. Returns the update, or 0 after `updates`.
int64_t frozen_after(FreezeRule& rule, int64_t first, int64_t updates,
                     const std::function<double(int64_t)>& norm) {
  const auto world = comm::make_single_rank();
  Context context = Context::cpu(1);
  for (int64_t update = first; update <= updates; ++update) {
    const std::vector<float> variance(16, static_cast<float>(norm(update) / 16));
    if (rule.freezes_after(context, *world, update, ConstView::of(variance.data(), {16}), 1)) {
      return update;
    }
  }
  return 0;
}

TEST(FreezeRule, ANumber) {
  FreezeRule rule({.step = 100}, kBeta2, {});
  EXPECT_FALSE(rule.observes(50));
  EXPECT_TRUE(rule.observes(51));
  EXPECT_TRUE(rule.observes(100));
  EXPECT_FALSE(rule.observes(101));
  EXPECT_EQ(frozen_after(rule, 1, 200, [](int64_t) { return 1; }), 100);
}

TEST(FreezeRule, WaitsForTheWarmupOfTheRate) {
  FreezeRule rule(automatic(100), kBeta2, {.schedule_warmup = 300});
  const int64_t frozen = frozen_after(rule, 1, 1000, [](int64_t) { return 1; });
  EXPECT_GT(frozen, 300 + FreezeRule::kObservedUpdates);
  // One sample in a sixteenth of the window of 100.
  EXPECT_LE(frozen, 300 + FreezeRule::kObservedUpdates + 6);
}

TEST(FreezeRule, WaitsForTheVariance) {
  // Falls below a half in ten updates, until update 400, then stays.
  const auto norm = [](int64_t update) {
    return std::pow(0.4, static_cast<double>(std::min<int64_t>(update, 400)) / 10);
  };
  for (const int64_t window : {0, 50}) {
    FreezeRule rule(automatic(window), kBeta2, {.schedule_warmup = 300});
    const int64_t frozen = frozen_after(rule, 1, 3000, norm);
    EXPECT_GT(frozen, 400);
    EXPECT_LT(frozen, 400 + 50 + FreezeRule::kObservedUpdates + 12);
  }
}

TEST(FreezeRule, WaitsForAVarianceThatGrows) {
  // More than doubles in ten updates, until update 400, then stays.
  const auto norm = [](int64_t update) {
    return std::pow(2.5, static_cast<double>(std::min<int64_t>(update, 400)) / 10);
  };
  for (const int64_t window : {0, 50}) {
    FreezeRule rule(automatic(window), kBeta2, {.schedule_warmup = 300});
    const int64_t frozen = frozen_after(rule, 1, 3000, norm);
    EXPECT_GT(frozen, 400);
    EXPECT_LT(frozen, 400 + 50 + FreezeRule::kObservedUpdates + 12);
  }
}

TEST(FreezeRule, NeverBeforeAWholeWindow) {
  FreezeRule rule(automatic(100), kBeta2, {});
  EXPECT_GE(frozen_after(rule, 1, 1000, [](int64_t) { return 1; }),
            100 + FreezeRule::kObservedUpdates);
}

TEST(FreezeRule, TheWindowIsATenthOfAdamsMemory) {
  FreezeRule rule(automatic(0), kBeta2, {});
  const int64_t frozen = frozen_after(rule, 1, 1000, [](int64_t) { return 1; });
  EXPECT_GE(frozen, 10 + FreezeRule::kObservedUpdates);
  EXPECT_LE(frozen, 12 + FreezeRule::kObservedUpdates);
}

TEST(FreezeRule, SettledIsNeitherHalvedNorDoubled) {
  for (const double factor : {0.3, 0.6, 1.6, 3.0}) {  // a window of ten updates
    FreezeRule rule(automatic(0), kBeta2, {.schedule_warmup = 300});
    const int64_t frozen = frozen_after(rule, 1, 2000, [&](int64_t update) {
      return std::pow(factor, static_cast<double>(std::min<int64_t>(update, 330)) / 10);
    });
    const bool at_once = factor > 0.5 && factor < 2;
    EXPECT_NEAR(static_cast<double>(frozen), (at_once ? 301 : 334) + FreezeRule::kObservedUpdates,
                4)
        << factor;
  }
}

TEST(FreezeRule, NotWithTheLastUpdateOfTheRun) {
  const auto norm = [](int64_t) { return 1; };
  for (const int64_t total_steps : {20, 15}) {
    FreezeRule rule({.step = 20}, kBeta2, {.total_steps = total_steps});
    EXPECT_EQ(frozen_after(rule, 1, total_steps, norm), 0) << total_steps;
  }
  FreezeRule in_time({.step = 20}, kBeta2, {.total_steps = 21});
  EXPECT_EQ(frozen_after(in_time, 1, 21, norm), 20);
  // The rule of a run of 20 updates that was extended by one.
  FreezeRule extended({.step = 20}, kBeta2, {.total_steps = 21});
  EXPECT_EQ(frozen_after(extended, 21, 21, norm), 0);
}

TEST(FreezeRule, WarnsOfADecisionThatIsTooLate) {
  // Falls below a half in ten updates, until update 170, then stays.
  const auto norm = [](int64_t update) {
    return std::pow(0.4, static_cast<double>(std::min<int64_t>(update, 170)) / 10);
  };
  const RunFacts run{.total_steps = 200, .schedule_warmup = 10};
  EXPECT_TRUE(freeze_warnings(automatic(0), kBeta2, run).empty());
  FreezeRule rule(automatic(0), kBeta2, run);
  EXPECT_EQ(frozen_after(rule, 1, 160, norm), 0);
  EXPECT_NE(rule.describe_end().find("has not seen the variance settle"), std::string::npos);
  testing::internal::CaptureStderr();
  EXPECT_EQ(frozen_after(rule, 161, 200, norm), 0);
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t found = log.find("warning: update 1");
  ASSERT_NE(found, std::string::npos) << log;
  EXPECT_NE(log.find("the run ends after 200: nothing will be compressed"), std::string::npos);
  EXPECT_EQ(log.find("warning", found + 7), std::string::npos) << log;
  EXPECT_NE(rule.describe_end().find("\"auto\" has decided to end after update 2"),
            std::string::npos)
      << rule.describe_end();
}

// LRRangeTest's warm-up has the maximal length: adding updates to it would overflow.
TEST(FreezeRule, WarnsOfWhatIsHardlyMeant) {
  const auto warning_of = [](const FreezeOptions& options, int64_t warmup) {
    const auto warnings =
        freeze_warnings(options, kBeta2, {.total_steps = 200, .schedule_warmup = warmup});
    return warnings.empty() ? std::string() : warnings.front();
  };
  EXPECT_NE(warning_of(automatic(0), INT64_MAX).find("nothing will be compressed"),
            std::string::npos);
  EXPECT_NE(warning_of(automatic(0), 170).find("before update 221"), std::string::npos);
  // Compares 11 with 1, and freezes 50 updates later.
  EXPECT_NE(warning_of(automatic(0), 149).find("before update 200"), std::string::npos);
  EXPECT_EQ(warning_of(automatic(0), 148), "");
  EXPECT_EQ(warning_of(automatic(0), 10), "");
  EXPECT_NE(warning_of({.step = 200}, 10).find("not before the end of the run (200 steps)"),
            std::string::npos);
  EXPECT_EQ(warning_of({.step = 199}, 10), "");
  EXPECT_EQ(warning_of({.step = 20}, 21), "");
  EXPECT_NE(warning_of({.step = 20}, 22).find("while the learning rate still rises"),
            std::string::npos);
  EXPECT_NE(warning_of({.step = 20, .window = 5}, 10).find("freeze_window has no effect"),
            std::string::npos);
  // Nor to a freeze that is never meant, where the length of the run is not known.
  EXPECT_TRUE(freeze_warnings({.step = INT64_MAX}, kBeta2, {.schedule_warmup = 10}).empty());
}

// Updates are added to the window, so the largest may not come near the end of the numbers.
TEST(FreezeRule, RefusesAWindowLongerThanAnyRun) {
  const FreezeOptions most = automatic(FreezeOptions::kMaxWindow);
  for (const int64_t warmup : {int64_t{0}, INT64_MAX - FreezeOptions::kMaxWindow, INT64_MAX}) {
    EXPECT_GT(last_warmup_update(most, kBeta2, {.schedule_warmup = warmup}), most.window);
  }
  for (const int64_t window : {FreezeOptions::kMaxWindow + 1, INT64_MAX}) {
    const auto refused = [&](const auto& use) {
      EXPECT_THAT(message_of(use), testing::HasSubstr("freeze_window")) << window;
    };
    refused([&] { last_warmup_update(automatic(window), kBeta2, {}); });
    refused([&] { FreezeRule(automatic(window), kBeta2, {}); });
    refused([&] {
      const Json section{{"freeze_step", "auto"}, {"freeze_window", window}};
      Keys keys(section, "recipe.json", "optimizer.params");
      read_freeze_options(keys);
      keys.check();
    });
  }
}

TEST(FreezeRule, NothingLearnedIsNotSettled) {
  FreezeRule rule(automatic(0), kBeta2, {});
  EXPECT_EQ(frozen_after(rule, 1, 1000, [](int64_t) { return 0; }), 0);
}

TEST(FreezeRule, ResumesExactly) {
  const auto norm = [](int64_t update) {
    return std::pow(0.4, static_cast<double>(std::min<int64_t>(update, 200)) / 10);
  };
  FreezeRule unbroken(automatic(0), kBeta2, {.schedule_warmup = 100});
  const int64_t expected = frozen_after(unbroken, 1, 3000, norm);
  ASSERT_GT(expected, 250);
  for (const int64_t at : {150L, 240L, expected - 10}) {
    FreezeRule first(automatic(0), kBeta2, {.schedule_warmup = 100});
    EXPECT_EQ(frozen_after(first, 1, at, norm), 0);
    MemoryState state;
    first.save(state);
    FreezeRule second(automatic(0), kBeta2, {.schedule_warmup = 100});
    second.load(MemoryReader({state}));
    EXPECT_EQ(frozen_after(second, at + 1, 3000, norm), expected) << "at " << at;
  }
}

// A resumed run uses its current recipe.
TEST(FreezeRule, TheRecipeWinsOverTheCheckpoint) {
  const auto norm = [](int64_t) { return 1; };
  const auto frozen = [&](const FreezeOptions& before, const FreezeOptions& now, int64_t at) {
    FreezeRule first(before, kBeta2, {}), second(now, kBeta2, {});
    EXPECT_EQ(frozen_after(first, 1, at, norm), 0);
    MemoryState state;
    first.save(state);
    second.load(MemoryReader({state}));
    return frozen_after(second, at + 1, 1000, norm);
  };
  EXPECT_EQ(frozen({.step = 100}, {.step = 130}, 80), 130);
  // A number that has passed: with the next update.
  EXPECT_EQ(frozen({.step = 100}, {.step = 80}, 80), 81);
  EXPECT_EQ(frozen({.step = 100}, {.step = 7}, 80), 81);
  // "auto" decides after update 11 here.
  EXPECT_EQ(frozen(automatic(0), {.step = 90}, 40), 90);
  EXPECT_EQ(frozen(automatic(0), {.step = 7}, 40), 41);
  // With a fixed freeze step it has observed nothing: it needs a whole window and the observed
  // updates.
  EXPECT_EQ(frozen({.step = 100}, automatic(0), 80), 91 + FreezeRule::kObservedUpdates);
}

// All ranks freeze after the same update and stay equal, with real steps.
TEST(FreezeRule, RanksAgree) {
  TrialOptions options{
      .optimizer = onebit_adam_recipe({.adam = {.beta2 = kBeta2}, .freeze = automatic(20)})};
  options.run.schedule_warmup = 10;
  const auto ends = on_ranks(3, options, [](Trial& trial) {
    int frozen = 0;
    for (int step = 1; step <= 200 && frozen == 0; ++step) {
      if (trial.step().froze_now) frozen = step;
    }
    trial.steps(3);
    return std::pair(frozen, trial.values());
  });
  EXPECT_GT(ends[0].first, 10 + FreezeRule::kObservedUpdates);
  for (const auto& end : ends) EXPECT_EQ(end, ends[0]);
}

}  // namespace
}  // namespace onebit::optim
