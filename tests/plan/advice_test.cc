#include "onebit/program/plan/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kHour = 3600;

// Returns a plan for two hosts in which the four ways to exchange gradients take `seconds`.
RunPlan plan_with(const std::vector<double>& seconds) {
  const pretrain::PretrainingConfig config = small_config();
  RunPlan plan{.recipe = "small.json",
               .machine = round_machine(),
               .choices = choices_of(config.engine, {.total_steps = 100}),
               .asked = {.cluster = two_hosts(), .cannot = {}, .runs = {}}};
  for (const double one : seconds) {
    PlannedRun run{.memory_bytes = 1 << 30};
    run.run.seconds = one;
    run.waiting_share = 0.75;
    plan.asked.runs.push_back(run);
  }
  return plan;
}

TEST(Advice, TheSimplestThatIsNearlyAsFast) {
  const Advice advice = advise(plan_with({10 * kHour, 9.8 * kHour, 9.7 * kHour, 9.6 * kHour}));
  EXPECT_EQ(advice.choice, 0u);
  EXPECT_FALSE(advice.out_of_reach);
  EXPECT_THAT(advice.sentence, HasSubstr("Choose f32 averages: 10h 00m"));
  EXPECT_EQ(advise(plan_with({20 * kHour, 9.8 * kHour, 9.7 * kHour, 9.6 * kHour})).choice, 1u);
}

TEST(Advice, CompressionWhereItSavesMore) {
  const Advice advice = advise(plan_with({80 * kHour, 40 * kHour, 10 * kHour, 9.9 * kHour}));
  EXPECT_EQ(advice.choice, 2u);
  EXPECT_EQ(advice.sentence,
            "Choose 1-bit Adam: 10h 00m instead of 1d 16h with bf16 averages, because 75 % of a "
            "step with those is spent waiting for the network.");
  EXPECT_EQ(advise(plan_with({80 * kHour, 40 * kHour, 10 * kHour, 2 * kHour})).choice, 3u);
}

TEST(Advice, WhatDoesNotFitIsNotChosen) {
  RunPlan plan = plan_with({80 * kHour, 40 * kHour, 10 * kHour, 2 * kHour});
  plan.asked.runs[3].fits = false;
  EXPECT_EQ(advise(plan).choice, 2u);
  for (PlannedRun& run : plan.asked.runs) run.fits = false;
  const Advice nothing = advise(plan);
  EXPECT_TRUE(nothing.out_of_reach);
  EXPECT_THAT(nothing.sentence, HasSubstr("Nothing fits: 1 rank of at least 1.07 GB"));
  EXPECT_THAT(nothing.sentence, HasSubstr("train_micro_batch_size_per_gpu"));
}

TEST(Advice, OneRankHasNothingToChoose) {
  RunPlan plan = plan_with({10 * kHour, 10 * kHour, 10 * kHour, 10 * kHour});
  plan.asked.cluster.hosts = 1;
  const Advice advice = advise(plan);
  EXPECT_EQ(advice.choice, 0u);
  EXPECT_THAT(advice.sentence, HasSubstr("One rank exchanges nothing"));
}

TEST(Advice, ReportsWhatIsOutOfReachAndWhatWouldReachIt) {
  RunPlan plan = plan_with({9 * kYear, 7 * kYear, 5 * kYear, 5 * kYear});
  const Advice never = advise(plan);
  EXPECT_TRUE(never.out_of_reach);
  EXPECT_THAT(never.sentence, HasSubstr("Out of reach: 5.0 years to the end. Choose 1-bit Adam"));
  EXPECT_THAT(never.sentence, HasSubstr("no number of ranks up to 1,024"));
  PlannedRanks many = plan.asked;
  many.cluster.hosts = 256;
  for (PlannedRun& run : many.runs) run.run.seconds = 40 * kDay;
  plan.others.push_back(many);
  many.cluster.hosts = 512;
  many.runs[2].run.seconds = 20 * kDay;
  plan.others.push_back(many);
  EXPECT_THAT(advise(plan).sentence, HasSubstr("512 ranks on 512 such hosts would take 20d 00h"));
}

TEST(Advice, ElevenMonthsAreNotOutOfReach) {
  const Advice advice = advise(plan_with({1.2 * kYear, 0.9 * kYear, 0.9 * kYear, 0.9 * kYear}));
  EXPECT_FALSE(advice.out_of_reach);
  EXPECT_THAT(advice.sentence, Not(HasSubstr("Out of reach")));
}

}  // namespace
}  // namespace onebit::plan
