#include "onebit/program/launch/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::launch {
namespace {

using testing::HasSubstr;

Failure outside(int64_t step, const char* checkpoint = "") {
  return {.kind = FaultKind::kOutside, .cause = "killed", .step = step, .checkpoint = checkpoint};
}

TEST(RestartPolicy, PausesLongerEachTimeWithoutANewCheckpoint) {
  RestartPolicy policy(8, 1);
  double seconds = 1;
  for (int step = 0; step < 8; ++step, seconds *= 2) {
    const RestartDecision decision = policy.after(outside(step));
    EXPECT_TRUE(decision.restart);
    EXPECT_DOUBLE_EQ(decision.pause_seconds, std::min(seconds, 60.0));
  }
  const RestartDecision last = policy.after(outside(8));
  EXPECT_FALSE(last.restart);
  EXPECT_THAT(last.reason, HasSubstr("8 restarts without a new checkpoint"));
}

TEST(RestartPolicy, CountsFromTheLastCheckpoint) {
  RestartPolicy policy(2, 1);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const std::string tag = "global_step" + std::to_string(attempt);
    const RestartDecision decision = policy.after(outside(5, tag.c_str()));
    EXPECT_TRUE(decision.restart) << attempt;
    EXPECT_DOUBLE_EQ(decision.pause_seconds, 1);
  }
}

TEST(RestartPolicy, EndsWhenAnErrorRepeatsAtTheSameStep) {
  const auto reported = [](int64_t step, const char* cause) {
    return Failure{.kind = FaultKind::kReported, .cause = cause, .step = step, .checkpoint = {}};
  };
  RestartPolicy policy(100, 1);
  EXPECT_TRUE(policy.after(reported(7, "not finite")).restart);
  EXPECT_TRUE(policy.after(reported(8, "not finite")).restart);
  EXPECT_TRUE(policy.after(reported(8, "disk full")).restart);
  const RestartDecision same = policy.after(reported(8, "disk full"));
  EXPECT_FALSE(same.restart);
  EXPECT_THAT(same.reason, HasSubstr("2 times in a row with the same error at the same step"));
  RestartPolicy patient(100, 1);
  EXPECT_TRUE(patient.after(outside(3)).restart);
  EXPECT_TRUE(patient.after(outside(3)).restart);
  EXPECT_FALSE(patient.after(outside(3)).restart);
}

// A wrong tag, a damaged checkpoint, a folder in use: the next attempt would fail in the same way.
TEST(RestartPolicy, EndsWithAnErrorBeforeTraining) {
  RestartPolicy policy(100, 1);
  Failure failure = outside(-1);
  failure.begun = false;
  EXPECT_TRUE(policy.after(failure).restart);
  failure.kind = FaultKind::kReported;
  const RestartDecision decision = policy.after(failure);
  EXPECT_FALSE(decision.restart);
  EXPECT_THAT(decision.reason, HasSubstr("an error of its own before it started training"));
}

TEST(RestartPolicy, OfNoRestarts) {
  RestartPolicy policy(0, 1);
  EXPECT_FALSE(policy.after(outside(1)).restart);
}

}  // namespace
}  // namespace onebit::launch
