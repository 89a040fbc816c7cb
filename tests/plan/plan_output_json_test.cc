#include "onebit/program/plan/plan_output.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

TEST(PlanJson, HasEveryFigureOfThePlan) {
  Context context = Context::cpu(1);
  const RunPlan plan = make_plan(context, small_config(), round_machine(),
                                 {.cluster = two_hosts(), .watts_per_host = 500});
  const Json json = parse_json(to_json(plan).dump(), "plan");  // as a reader gets it
  EXPECT_EQ(json.at("kind"), "plan");
  EXPECT_EQ(json.at("batch").at("accumulation"), 4);
  EXPECT_EQ(json.at("layers"), 2);
  EXPECT_EQ(json.at("computed_layers"), 2);
  EXPECT_EQ(json.at("plan").at("ranks"), 2);
  EXPECT_TRUE(json.at("plan").at("cannot").is_null());
  ASSERT_EQ(json.at("plan").at("choices").size(), 4u);
  const Json& one_bit = json.at("plan").at("choices").at(2);
  EXPECT_EQ(one_bit.at("name"), "1-bit Adam");
  EXPECT_EQ(one_bit.at("memory_bytes"), plan.asked.runs[2].memory_bytes);
  EXPECT_EQ(one_bit.at("steps").at("compressed"), 90);
  EXPECT_DOUBLE_EQ(one_bit.at("seconds").get<double>(), plan.asked.runs[2].run.seconds);
  EXPECT_DOUBLE_EQ(one_bit.at("compressed_step").at("exchange").get<double>(),
                   plan.asked.runs[2].compressed.exchange);
  EXPECT_TRUE(one_bit.at("local_step").is_null());
  EXPECT_EQ(json.at("others").size(), plan.others.size());
  EXPECT_TRUE(json.at("others").back().at("cannot").is_string());
  EXPECT_EQ(json.at("host").at("processor"), "a processor");
  EXPECT_EQ(json.at("advice").at("sentence"), plan.advice.sentence);
}

}  // namespace
}  // namespace onebit::plan
