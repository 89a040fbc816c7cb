#include "onebit/program/plan/plan_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

using ::testing::HasSubstr;

TEST(PlanText, ShowsTheRunItsStepsOtherRanksAndTheAdvice) {
  Context context = Context::cpu(1);
  const RunPlan plan = make_plan(context, small_config(), round_machine(),
                                 {.cluster = two_hosts(), .watts_per_host = 500});
  const std::string text = plan_text(plan, "from here.json");
  for (const char* part :
       {"100 steps of 64 sequences of 32 tokens", "2 hosts with 1 rank each: 2 ranks",
        "125 MB/s, latency 50.0 us", "a processor, 8 threads", "from here.json",
        "64 = 8 per rank x 4 micro-steps x 2 ranks", "500 W per host, assumed",
        "f32 averages (the recipe)", "1-bit Adam, averages", "1-bit Adam, one bit", "optimizer",
        "64 sequences has no micro-batch of 8 for each of 16, 32, 64 ranks\n",
        "64 sequences leaves some of 128, 256, 512, 1024 ranks without a sequence\n",
        "2 to the power of"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_TRUE(text.ends_with(plan.advice.sentence + "\n"));
}

TEST(PlanText, ReportsWhyTheBatchFitsSomeRanksNot) {
  Context context = Context::cpu(1);
  PlannedCluster cluster = two_hosts();
  cluster.ranks_per_host = cluster.host_parts = 3;
  pretrain::PretrainingConfig config = small_config();
  const auto text = [&](const engine::BatchSizes& batch) {
    config.engine.batch = batch;
    return plan_text(make_plan(context, config, round_machine(), {.cluster = cluster}), "");
  };
  EXPECT_THAT(text({.train = 36, .micro = 0, .accumulation = 1}),
              HasSubstr("does not divide among 24 ranks\n"));
  EXPECT_THAT(text({.train = 36, .micro = 8, .accumulation = 0, .uneven = true}),
              HasSubstr("36 sequences leaves some of 48, 96, 192, 384, 768 ranks without"));
}

TEST(PlanText, ReportsHowManyLayersPassesCompute) {
  Context context = Context::cpu(1);
  pretrain::PretrainingConfig config = small_config();
  const auto text = [&] {
    return plan_text(make_plan(context, config, round_machine(), {.cluster = two_hosts()}), "");
  };
  EXPECT_EQ(text().find("layer drop"), std::string::npos);
  config.layer_drop = {.enabled = true, .theta = 0.5, .gamma = 1e9};
  EXPECT_THAT(text(), HasSubstr("a pass computes 1.75 of 2 layers, on average"));
}

}  // namespace
}  // namespace onebit::plan
