#include "onebit/program/plan/quantity.h"

#include <gtest/gtest.h>

namespace onebit::plan {
namespace {

TEST(Bandwidth, IsBytesASecondOfBitsOrBytes) {
  const std::pair<const char*, double> cases[] = {
      {"10Gb/s", 1.25e9},  {"100Mb/s", 12.5e6}, {"100 Mb/s", 12.5e6}, {"2.5Gb/s", 312.5e6},
      {"8000b/s", 1000},   {"64kb/s", 8e3},     {"1gbit", 125e6},     {"100mbit", 12.5e6},
      {"1Gbit/s", 125e6},  {"1.2GB/s", 1.2e9},  {"120MB/s", 120e6},   {"0.4Tb/s", 50e9},
      {"1e1Gb/s", 1.25e9}, {"1kb/s", 125}};
  for (const auto& [text, bytes] : cases) {
    const auto value = parse_bandwidth(text);
    ASSERT_TRUE(value) << text;
    EXPECT_NEAR(*value, bytes, 1e-9 * bytes) << text;
  }
}

TEST(Bandwidth, WhatIsNoneIsRefused) {
  for (const char* text : {"", "10", "Gb/s", "10Gbs", "10 parsecs", "0Gb/s", "-1Gb/s", "nanGb/s",
                           "infGb/s", "1e300Gb/s", "10Gb/s ", "10  Gb/s", "10Gb/s/s", "101Tb/s",
                           "1.2.3Gb/s", "010Gb/s", "1e-9b/s", "999b/s", "0.9kb/s"}) {
    EXPECT_FALSE(parse_bandwidth(text)) << text;
  }
}

TEST(Latency, IsSeconds) {
  const std::pair<const char*, double> cases[] = {
      {"50us", 50e-6}, {"0.2 ms", 0.2e-3}, {"1s", 1}, {"800ns", 800e-9}, {"0us", 0}, {"60s", 60}};
  for (const auto& [text, seconds] : cases) {
    const auto value = parse_latency(text);
    ASSERT_TRUE(value) << text;
    EXPECT_NEAR(*value, seconds, 1e-12) << text;
  }
}

TEST(Latency, WhatIsNoneIsRefused) {
  for (const char* text : {"", "50", "us", "-1us", "50 fortnights", "61s", "nanus", "1e400s"}) {
    EXPECT_FALSE(parse_latency(text)) << text;
  }
}

}  // namespace
}  // namespace onebit::plan
