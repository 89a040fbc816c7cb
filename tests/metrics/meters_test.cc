#include "onebit/ground/metrics/meters.h"

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

TEST(Rate, RemembersTheLastAdditionsOnly) {
  Rate rate(2);
  EXPECT_EQ(rate.per_second(), 0);
  rate.add(1000, 1);
  rate.add(10, 1);
  rate.add(20, 2);
  EXPECT_DOUBLE_EQ(rate.per_second(), 10);
}

TEST(Median, IsTheMiddleWhateverLiesFarOff) {
  Median median;
  EXPECT_EQ(median.median(), 0);
  for (const double value : {3.0, 1e9, 1.0, 2.0, 4.0}) median.add(value);
  EXPECT_EQ(median.median(), 3);
  EXPECT_EQ(median.count(), 5);
}

TEST(Median, OfVeryManyValuesComesFromSomeOfAll) {
  Median median;
  for (int i = 0; i <= 100000; ++i) median.add(i);
  EXPECT_NEAR(median.median(), 50000, 200);
  EXPECT_EQ(median.count(), 100001);
}

}  // namespace
}  // namespace onebit::metrics
