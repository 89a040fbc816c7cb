#include "onebit/data/text/word_piece.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/text/small_vocabulary.h"

namespace onebit::text {
namespace {

// "id:end" of every part.
std::string parts_of(const WordPiece& pieces, std::string_view word) {
  std::vector<WordPart> parts = {{99, 99}};  // is overwritten
  pieces.split(word, parts);
  std::vector<std::string> words;
  for (const WordPart& part : parts) words.push_back(fmt::format("{}:{}", part.id, part.end));
  return fmt::format("{}", fmt::join(words, " "));
}

TEST(WordPiece, TakesTheLongestMatchFromTheLeft) {
  const auto vocabulary = small_vocabulary({"un", "una", "##ffable", "##ble", "##f", "able"});
  const WordPiece pieces(*vocabulary);
  EXPECT_EQ(parts_of(pieces, "un"), "5:2");
  EXPECT_EQ(parts_of(pieces, "unable"), "6:3 8:6") << "\"una\" is longer than \"un\"";
  EXPECT_EQ(parts_of(pieces, "unaffable"), "6:3 7:9");
  EXPECT_EQ(parts_of(pieces, "unaf"), "6:3 9:4");
}

TEST(WordPiece, IsUnknownAsAWholeWhereNothingFits) {
  const auto vocabulary = small_vocabulary({"a", "##b"});
  const WordPiece pieces(*vocabulary);
  EXPECT_EQ(parts_of(pieces, "abbb"), "5:1 6:2 6:3 6:4");
  EXPECT_EQ(parts_of(pieces, "abc"), "1:3");
  EXPECT_EQ(parts_of(pieces, "b"), "1:1") << "\"##b\" begins no word";
}

}  // namespace
}  // namespace onebit::text
