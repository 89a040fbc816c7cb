#include "onebit/ground/base/error.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace onebit
