#include "onebit/ground/base/printable.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

TEST(ShellQuoted, QuotesWhatAShellWouldReadDifferently) {
  EXPECT_EQ(shell_quoted("a/b-c_1.json"), "a/b-c_1.json");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("two words"), "'two words'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("run $(touch x)"), "'run $(touch x)'");
}

}  // namespace
}  // namespace onebit
