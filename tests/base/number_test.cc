#include "onebit/ground/base/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace onebit {
namespace {

TEST(WholeNumber, IsTheWholeText) {
  EXPECT_EQ(whole_number<int>("0"), 0);
  EXPECT_EQ(whole_number<int>("-17"), -17);
  EXPECT_EQ(whole_number<int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(whole_number<size_t>("007"), 7u);
}

TEST(WholeNumber, IsNothingForAnyOtherText) {
  for (const char* text : {"", "-", "x", "1x", "1.0", "1e3", " 1", "1 ", "+1", "0x10", "--1"}) {
    EXPECT_EQ(whole_number<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(whole_number<int>("2147483648"), std::nullopt);
  EXPECT_EQ(whole_number<size_t>("-1"), std::nullopt);
  const std::string_view of_more = std::string_view("123").substr(0, 2);
  EXPECT_EQ(whole_number<int>(of_more), 12);
}

}  // namespace
}  // namespace onebit
