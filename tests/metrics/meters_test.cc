#include "onebit/metrics/meters.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onebit::metrics {
namespace {

TEST(RunningAverage, IsExactForAConstantFromTheFirstValue) {
  RunningAverage average(100);
  EXPECT_EQ(average.average(), 0);
  for (int i = 0; i < 1000; ++i) {
    average.add(3.5);
    ASSERT_NEAR(average.average(), 3.5, 1e-12);
  }
}

TEST(RunningAverage, WeighsByAge) {
  RunningAverage average(2);  // keeps one half
  average.add(1);
  average.add(4);
  EXPECT_DOUBLE_EQ(average.average(), (0.5 * 1 + 4) / 1.5);
  average.add(NAN);
  average.add(INFINITY);
  EXPECT_EQ(average.not_finite(), 2);
  EXPECT_DOUBLE_EQ(average.average(), 3);
}

TEST(Mean, IsWeightedAndResets) {
  Mean mean;
  mean.add(1, 3);
  mean.add(5);
  EXPECT_DOUBLE_EQ(mean.mean(), 2);
  mean.reset();
  EXPECT_EQ(mean.mean(), 0);
  EXPECT_EQ(mean.weight(), 0);
}

TEST(Rate, RemembersTheLastAdditionsOnly) {
  Rate rate(2);
  EXPECT_EQ(rate.per_second(), 0);
  rate.add(1000, 1);
  rate.add(10, 1);
  rate.add(20, 2);
  EXPECT_DOUBLE_EQ(rate.per_second(), 10);
}

TEST(TimeParts, AddUpByName) {
  TimeParts parts, other;
  parts.add("forward", 1);
  parts.add("backward", 2);
  parts.add("forward", 0.5);
  other.add("wait", 4);
  other.add("backward", 1);
  parts.add(other);
  ASSERT_EQ(parts.parts().size(), 3u);
  EXPECT_EQ(parts.parts()[2].first, "wait");
  EXPECT_DOUBLE_EQ(parts.seconds("forward"), 1.5);
  EXPECT_DOUBLE_EQ(parts.seconds("backward"), 3);
  EXPECT_DOUBLE_EQ(parts.total_seconds(), 8.5);
  EXPECT_EQ(parts.seconds("none"), 0);
  parts.reset();
  EXPECT_EQ(parts.total_seconds(), 0);
  EXPECT_EQ(parts.parts().size(), 3u);
  {
    const TimeParts::Scope scope(parts, "forward");
    volatile double work = 1;
    for (int i = 0; i < 1000; ++i) work = work * 1.0001;
  }
  EXPECT_GT(parts.seconds("forward"), 0);
}

}  // namespace
}  // namespace onebit::metrics
