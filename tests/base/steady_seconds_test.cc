#include "onebit/base/steady_seconds.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

void work_for(double seconds) {
  const Stopwatch watch;
  while (watch.seconds() < seconds) {
  }
}

TEST(SteadySeconds, AMomentOfOtherWorkDoesNotCount) {
  int calls = 0;
  const double found = steady_seconds([&] {
    ++calls;
    work_for(calls == 1 ? 0.3 : calls == 3 ? 0.2 : 0.001);  // first touch; another program
  });
  EXPECT_GE(found, 0.001);
  EXPECT_LT(found, 0.02);
}

TEST(SteadySeconds, WhatComesAgainAndAgainDoes) {
  int calls = 0;
  const double found = steady_seconds([&] { work_for(++calls % 2 == 0 ? 0.003 : 0.001); });
  EXPECT_GE(found, 0.0015);
}

TEST(SteadySeconds, LongWorkIsDoneFourTimes) {
  int calls = 0;
  steady_seconds([&] {
    ++calls;
    work_for(0.03);
  });
  EXPECT_EQ(calls, 4);
}

}  // namespace
}  // namespace onebit
