#include "onebit/program/plan/plan_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

using ::testing::HasSubstr;

TEST(PlanPicture, HasALineOfEachChoiceOverTheRanks) {
  Context context = Context::cpu(1);
  const RunPlan plan = make_plan(context, small_config(), round_machine(),
                                 {.cluster = two_hosts(), .watts_per_host = 500});
  const std::string picture = plan_picture(plan);
  EXPECT_TRUE(picture.starts_with("<svg xmlns="));
  for (const char* part : {"small.json", "f32 averages", "0/1 Adam", ">ranks<", "line c3", ">8<"}) {
    EXPECT_THAT(picture, HasSubstr(part));
  }
}

}  // namespace
}  // namespace onebit::plan
