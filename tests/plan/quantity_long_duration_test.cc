#include "onebit/program/plan/quantity.h"

#include <gtest/gtest.h>

namespace onebit::plan {
namespace {

TEST(LongDuration, NamesYearsWhereDaysSayNothing) {
  EXPECT_EQ(long_duration(11100), "3h 05m");
  EXPECT_EQ(long_duration(12 * kDay + 4 * 3600), "12d 04h");
  EXPECT_EQ(long_duration(1.5 * kYear), "547d 21h");
  EXPECT_EQ(long_duration(5.32 * kYear), "5.3 years");
  EXPECT_EQ(long_duration(1234 * kYear), "1234 years");
}

}  // namespace
}  // namespace onebit::plan
