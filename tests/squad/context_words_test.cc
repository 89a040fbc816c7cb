#include "onebit/apps/squad/context_words.h"

#include <gtest/gtest.h>

namespace onebit::squad {
namespace {

TEST(ContextWords, CutsAtFewCharacters) {
  const std::string text = " a\u00a0b\t\tc\u202fd\u2003e\n";
  const ContextWords words(text);
  ASSERT_EQ(words.size(), 3);
  EXPECT_EQ(words.word(0), "a\u00a0b");
  EXPECT_EQ(words.word(2), "d\u2003e");
  EXPECT_EQ(words.word_at(0), -1);
  EXPECT_EQ(words.word_at(text.find('c') - 1), 0) << "a separator belongs to the word before it";
  EXPECT_EQ(words.word_at(text.size() - 1), 2);
  EXPECT_EQ(words.joined(0, 2), "a\u00a0b c d\u2003e");
  EXPECT_EQ(byte_of_code_point("\u00e9x", 1), 2u);
  EXPECT_EQ(byte_of_code_point("x", 2), std::string_view::npos);
  EXPECT_EQ(byte_of_code_point("x", -1), std::string_view::npos);
}

}  // namespace
}  // namespace onebit::squad
