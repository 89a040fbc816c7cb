#include "onebit/program/launch/hang_watch.h"

#include <gtest/gtest.h>

namespace onebit::launch {
namespace {

// Gives the event of a line to the watch.
void give(HangWatch& watch, const std::string& line, double now) {
  const std::optional<RunEvent> event = parse_run_event(line);
  ASSERT_TRUE(event) << line;
  watch.event(*event, now);
}

TEST(HangWatch, AllowsTenMedianStepsAndAMinuteAtLeast) {
  HangWatch watch({}, 0);
  give(watch, "begin 0", 5);
  for (int step = 1; step <= 5; ++step) give(watch, "step " + std::to_string(step), 5 + step);
  EXPECT_EQ(watch.step(), 5);
  EXPECT_DOUBLE_EQ(watch.limit(), 60);
  EXPECT_FALSE(watch.complaint(69.9));
  ASSERT_TRUE(watch.complaint(71));
  EXPECT_EQ(*watch.complaint(71), "no step for 61 s after step 5");
  HangWatch slow({}, 0);
  for (int step = 1; step <= 5; ++step) give(slow, "step " + std::to_string(step), 20 * step);
  EXPECT_DOUBLE_EQ(slow.limit(), 200);
}

TEST(HangWatch, GivesAPhaseItsOwnTime) {
  HangWatch watch({.hang_seconds = 3, .phase_seconds = 50}, 0);
  EXPECT_FALSE(watch.complaint(49));
  EXPECT_EQ(*watch.complaint(51), "no progress for 51 s in the phase \"start\"");
  give(watch, "begin 40", 10);
  EXPECT_EQ(watch.step(), 40);
  EXPECT_FALSE(watch.complaint(50));  // the first step may still read and plan
  give(watch, "step 41", 60);
  EXPECT_TRUE(watch.complaint(64));
  give(watch, "phase evaluation", 61);
  EXPECT_FALSE(watch.complaint(100));
  // The step after an evaluation counts from its end, and the evaluation is no step.
  give(watch, "step 41", 105);
  EXPECT_TRUE(watch.complaint(109));
  give(watch, "step 42", 106);
  EXPECT_FALSE(watch.complaint(108));
  give(watch, "phase checkpoint", 107);
  give(watch, "finished 42", 108);
  EXPECT_TRUE(watch.finished());
  EXPECT_FALSE(watch.stopped());
}

TEST(HangWatch, LeavesPhasesOutOfTheMedian) {
  HangWatch watch({}, 0);
  double now = 0;
  for (int step = 1; step <= 20; ++step) {
    give(watch, "step " + std::to_string(step), now += 1);
    give(watch, "phase evaluation", now);
    give(watch, "step " + std::to_string(step), now += 500);
  }
  EXPECT_DOUBLE_EQ(watch.limit(), 60);
}

TEST(HangWatch, KnowsThatARunWasStopped) {
  HangWatch watch({}, 0);
  give(watch, "step 7", 1);
  give(watch, "failed no memory", 2);
  give(watch, "stopped 7", 3);
  EXPECT_TRUE(watch.stopped());
  EXPECT_FALSE(watch.finished());
  EXPECT_EQ(watch.step(), 7);
}

TEST(HangWatch, KnowsWhichCheckpointIsThere) {
  HangWatch watch({}, 0);
  EXPECT_EQ(watch.saved_step(), -1);
  give(watch, "begin 40", 1);
  EXPECT_EQ(watch.saved_step(), 40);
  give(watch, "step 41", 2);
  give(watch, "saved 60", 3);
  EXPECT_EQ(watch.saved_step(), 60);
  // A saved checkpoint does not count as a step.
  EXPECT_EQ(watch.step(), 41);
  EXPECT_TRUE(watch.complaint(63));
}

}  // namespace
}  // namespace onebit::launch
