#include "onebit/ground/base/printable.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

TEST(Printable, ControlCharactersAreShown) {
  EXPECT_EQ(printable("\x1b]0;owned\x07\x1b[31mred\x7f"), "\\x1b]0;owned\\x07\\x1b[31mred\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b\rc", 5)), "a\\x00b\\x0dc");
  // U+009B begins a control sequence as ESC [ does, and U+202E reverses what follows.
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(printable("\xE2\x80\xAEtxt\xE2\x81\xA6"), "\\xe2\\x80\\xaetxt\\xe2\\x81\\xa6");
}

TEST(Printable, OtherTextIsUnchanged) {
  for (const char* text : {"", "a\tb\nc", "héllo \xC2\xA0", "北京 ½ … \xE2\x80\xA9", "\xff\xfe"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ALineStaysOne) {
  EXPECT_EQ(printable_line("a\tb\nc\x1b"), "a\\tb\\nc\\x1b");
}

}  // namespace
}  // namespace onebit
