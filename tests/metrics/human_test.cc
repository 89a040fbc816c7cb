#include "onebit/ground/metrics/human.h"

#include <gtest/gtest.h>

#include <limits>

namespace onebit::metrics {
namespace {

TEST(Human, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.00 kB");
  EXPECT_EQ(human_bytes(999'600), "1.00 MB");
  EXPECT_EQ(human_bytes(1'534'000), "1.53 MB");
  EXPECT_EQ(human_bytes(21e9), "21.0 GB");
  EXPECT_EQ(human_bytes(5e18), "5000 PB");
}

TEST(Human, Count) {
  EXPECT_EQ(human_count(830), "830");
  EXPECT_EQ(human_count(8.25), "8.25");
  EXPECT_EQ(human_count(12'500), "12.5k");
  EXPECT_EQ(human_count(110e6), "110M");
  EXPECT_EQ(human_count(-2000), "-2.00k");
  EXPECT_EQ(human_count(9.999), "10.0");
  EXPECT_EQ(human_count(std::numeric_limits<double>::infinity()), "-");
}

TEST(Human, Duration) {
  EXPECT_EQ(human_duration(0), "0 s");
  EXPECT_EQ(human_duration(0.00085), "850 us");
  EXPECT_EQ(human_duration(0.0123), "12.3 ms");
  EXPECT_EQ(human_duration(4.21), "4.21 s");
  EXPECT_EQ(human_duration(59.97), "1m 00s");
  EXPECT_EQ(human_duration(185), "3m 05s");
  EXPECT_EQ(human_duration(3599.6), "1h 00m");
  EXPECT_EQ(human_duration(2 * 3600 + 4 * 60), "2h 04m");
  EXPECT_EQ(human_duration(52 * 3600), "2d 04h");
  EXPECT_EQ(human_duration(-3), "-3.00 s");
  EXPECT_EQ(human_duration(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(human_duration(1e300), "-");
}

}  // namespace
}  // namespace onebit::metrics
