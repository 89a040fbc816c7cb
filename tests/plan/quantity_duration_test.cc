#include "onebit/program/plan/quantity.h"

#include <gtest/gtest.h>

namespace onebit::plan {
namespace {

TEST(Duration, HasUnits) {
  const std::pair<const char*, double> cases[] = {{"90", 90},     {"90s", 90},   {"1.5m", 90},
                                                  {"10min", 600}, {"2h", 7200},  {"500ms", 0.5},
                                                  {"0.25", 0.25}, {"1e1s", 10.0}};
  for (const auto& [text, seconds] : cases) {
    ASSERT_TRUE(parse_duration(text)) << text;
    EXPECT_DOUBLE_EQ(*parse_duration(text), seconds) << text;
  }
}

TEST(Duration, IsAboveZeroAndFinite) {
  for (const char* text :
       {"", "s", "0", "-1s", "1d", "1 m", "05m", "00.5h", "inf", "nan", "1e999", "10ss"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

}  // namespace
}  // namespace onebit::plan
