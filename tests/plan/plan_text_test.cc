#include "onebit/plan/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

using ::testing::HasSubstr;

TEST(PlanText, ShowsTheRunItsStepsOtherRanksAndTheAdvice) {
  Context context = Context::cpu(1);
  const RunPlan plan = make_plan(context, small_config(), round_machine(),
                                 {.cluster = two_hosts(), .watts_a_host = 500});
  const std::string text = plan_text(plan, "from here.json");
  for (const char* part :
       {"100 steps of 64 sequences of 32 tokens", "2 hosts with 1 rank each: 2 ranks",
        "125 MB/s, latency 50.0 us", "a processor, 8 threads", "from here.json",
        "64 = 8 a rank x 4 micro-steps x 2 ranks", "500 W a host, assumed",
        "f32 averages (the recipe)", "1-bit Adam, averages", "1-bit Adam, one bit", "optimizer",
        "does not divide among 16, 32, 64, 128, 256, 512, 1024 ranks", "2 to the power of"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_TRUE(text.ends_with(plan.advice.sentence + "\n"));
}

TEST(PlanText, SaysHowManyLayersPassesCompute) {
  Context context = Context::cpu(1);
  tasks::PretrainingConfig config = small_config();
  const auto text = [&] {
    return plan_text(make_plan(context, config, round_machine(), {.cluster = two_hosts()}), "");
  };
  EXPECT_EQ(text().find("layer drop"), std::string::npos);
  config.layer_drop = {.enabled = true, .theta = 0.5, .gamma = 1e9};
  EXPECT_THAT(text(), HasSubstr("a pass computes 1.75 of 2 layers, in the mean"));
}

}  // namespace
}  // namespace onebit::plan
