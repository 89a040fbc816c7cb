#include "onebit/program/cluster/problems.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "tests/base/message_of.h"

namespace onebit::cluster {
namespace {

using testing::HasSubstr;

TEST(Problems, HaveALineEach) {
  EXPECT_EQ(table_of({{"a", "is off"}, {"hosts:3", "no name"}, {"b", "is off"}}),
            "  a        is off\n  hosts:3  no name\n  b        is off\n");
}

// A thousand hosts that lack the program are one mistake.
TEST(Problems, OfManyHostsAlikeHaveOneLine) {
  Problems problems = {{"first", "has another version"}};
  for (int i = 0; i < 1000; ++i) problems.push_back({fmt::format("host{:03}", i), "is off"});
  problems.push_back({"last", "has another version"});
  const std::string table = table_of(problems);
  EXPECT_EQ(std::ranges::count(table, '\n'), 3);
  EXPECT_THAT(table, HasSubstr("host000, host001, host002, ... (1000 in all)  is off\n"));
  EXPECT_THAT(table, HasSubstr("last "));
  EXPECT_THAT(message_of([&] { require_none(problems, "wrong:"); }), HasSubstr("(1000 in all)"));
}

// A list of a thousand hosts may be in the format of another program.
TEST(Problems, OfManyKindsAreCounted) {
  Problems problems;
  for (int i = 0; i < 1000; ++i) problems.push_back({"hosts", fmt::format("\"host{}\" is odd", i)});
  const std::string table = table_of(problems);
  EXPECT_EQ(std::ranges::count(table, '\n'), 41);
  EXPECT_THAT(table, HasSubstr("  hosts  \"host39\" is odd\n  and 960 more\n"));
}

}  // namespace
}  // namespace onebit::cluster
