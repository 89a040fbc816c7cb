#include "onebit/apps/squad/python_text.h"

#include <gtest/gtest.h>

namespace onebit::squad {
namespace {

TEST(PythonSpace, IsWhatStrSplitSplitsAt) {
  for (const char32_t c : {U' ', U'\t', U'\v', U'\x1c', U'\u00a0', U'\u2028', U'\u3000'}) {
    EXPECT_TRUE(is_python_space(c)) << static_cast<uint32_t>(c);
  }
  // The zero-width space and the byte order mark are none.
  for (const char32_t c : {U'x', U'\x1b', U'\u200b', U'\ufeff'}) {
    EXPECT_FALSE(is_python_space(c)) << static_cast<uint32_t>(c);
  }
}

TEST(WithSingleSpaces, ShortensRunsAndTrims) {
  EXPECT_EQ(with_single_spaces(" x\u00a0\u3000y\x1c z "), "x y z");
  EXPECT_EQ(with_single_spaces(" \n"), "");
}

}  // namespace
}  // namespace onebit::squad
