#include "onebit/data/text/utf8.h"

#include <gtest/gtest.h>

namespace onebit::text {
namespace {

TEST(Utf8, AcceptsEveryCodePoint) {
  std::string all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) append_utf8(c, all);
  }
  EXPECT_EQ(first_invalid_utf8(all), std::nullopt);
  std::string_view rest = all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const DecodedCharacter decoded = decode_utf8(rest);
    ASSERT_EQ(decoded.code_point, c);
    rest.remove_prefix(decoded.size_bytes);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(Utf8, NamesTheFirstBadByte) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("\x80"), 0u);
  EXPECT_EQ(first_invalid_utf8("twelve bytes\xFF and more text"), 12u);
  EXPECT_EQ(first_invalid_utf8("ab\xC0\x80"), 2u);              // overlong
  EXPECT_EQ(first_invalid_utf8("ab\xE0\x80\x80"), 2u);          // overlong
  EXPECT_EQ(first_invalid_utf8("ab\xED\xA0\x80"), 2u);          // surrogate
  EXPECT_EQ(first_invalid_utf8("ab\xF4\x90\x80\x80"), 2u);      // above U+10FFFF
  EXPECT_EQ(first_invalid_utf8("ab\xF8\x88\x80\x80\x80"), 2u);  // five bytes
  EXPECT_EQ(first_invalid_utf8("12345678\xE2\x82"), 8u);        // cut short
  EXPECT_EQ(first_invalid_utf8("\xEF\xBF\xBD is fine"), std::nullopt);
}

// The Unicode Standard, table 3-8: one replacement for each maximal subpart.
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::string_view text = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63";
  const std::vector<std::pair<char32_t, uint32_t>> expected = {
      {0x61, 1}, {0xFFFD, 3}, {0xFFFD, 2}, {0xFFFD, 1}, {0x62, 1}, {0xFFFD, 1}, {0x63, 1}};
  std::string_view rest = text;
  for (const auto& [code_point, size_bytes] : expected) {
    const DecodedCharacter c = decode_utf8(rest);
    EXPECT_EQ(c.code_point, code_point);
    EXPECT_EQ(c.size_bytes, size_bytes);
    rest.remove_prefix(c.size_bytes);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(Utf8, CodePointsAreThoseThatAreWritten) {
  EXPECT_EQ(code_points("a\u00E9\u732B\xF0\x9F\x98\x80"), U"a\u00E9\u732B\U0001F600");
  EXPECT_EQ(code_points("x\xFFy"), U"x\uFFFDy");
  EXPECT_EQ(code_points(""), U"");
}

}  // namespace
}  // namespace onebit::text
