#include "onebit/ground/base/clock.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

double now = 0;

// A clock that advances only by the work of the tests, whatever else the machine does meanwhile.
class Watch {
 public:
  double seconds() const { return now - start_; }

 private:
  double start_ = now;
};

void work_for(double seconds) {
  now += seconds;
}

constexpr double kRounding = 1e-9;

TEST(SteadySeconds, AMomentOfOtherWorkDoesNotCount) {
  int calls = 0;
  const double found = steady_seconds<Watch>([&] {
    ++calls;
    work_for(calls == 1 ? 0.3 : calls == 3 ? 0.2 : 0.001);  // first touch, another program
  });
  EXPECT_NEAR(found, 0.001, kRounding);
}

TEST(SteadySeconds, WhatComesAgainAndAgainDoes) {
  int calls = 0;
  const double found = steady_seconds<Watch>([&] { work_for(++calls % 2 == 0 ? 0.003 : 0.001); });
  EXPECT_NEAR(found, 0.002, 0.0002);  // spans may hold one call more of one kind
}

TEST(SteadySeconds, LongWorkIsDoneFourTimes) {
  int calls = 0;
  const double found = steady_seconds<Watch>([&] {
    ++calls;
    work_for(0.03);
  });
  EXPECT_EQ(calls, 4);
  EXPECT_NEAR(found, 0.03, kRounding);
}

// The real clock: a call takes as long as the work's own clock says, or longer on a busy machine.
TEST(SteadySeconds, AreThoseOfTheClock) {
  const Stopwatch whole;
  int calls = 0;
  const double found = steady_seconds([&] {
    ++calls;
    for (const Stopwatch watch; watch.seconds() < 0.001;) {
    }
  });
  EXPECT_GE(found, 0.001);
  EXPECT_LE(found, whole.seconds());
  EXPECT_GE(calls, 4);
}

}  // namespace
}  // namespace onebit
