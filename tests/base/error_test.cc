#include "onebit/ground/base/error.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/base/message_of.h"

namespace onebit {
namespace {

TEST(Error, RequireFormatsOnlyOnFailure) {
  EXPECT_EQ(message_of([] { require(true, "never {}", 1); }), "(no error)");
  EXPECT_EQ(message_of([] { require(false, "{} of {}", 1, "two"); }), "1 of two");
  EXPECT_EQ(message_of([] { fail("plain"); }), "plain");
}

TEST(ErrorDeathTest, ABrokenInvariantNamesItsPlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ONEBIT_INVARIANT(1 + 1 == 2);
  EXPECT_DEATH(ONEBIT_INVARIANT(1 + 1 == 3), "error_test.cc:[0-9]+: 1 \\+ 1 == 3 does not hold");
}

// In a process of its own, because the setting is for good.
TEST(ErrorDeathTest, InsideAHostABrokenInvariantIsAnException) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto host = [] {
    throw_on_broken_invariants();
    try {
      ONEBIT_INVARIANT(1 + 1 == 3);
    } catch (const InternalError& error) {
      std::fputs(error.what(), stderr);
      std::exit(7);
    }
    std::exit(0);
  };
  EXPECT_EXIT(host(), testing::ExitedWithCode(7), "error_test.cc:[0-9]+: 1 \\+ 1 == 3 does not");
}

}  // namespace
}  // namespace onebit
