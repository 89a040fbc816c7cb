#include "onebit/data/text/basic_tokenizer.h"

#include <gtest/gtest.h>

namespace onebit::text {
namespace {

using Words = std::vector<std::string>;

Words words(std::string_view text, Casing casing = Casing::kUncased) {
  std::vector<BasicWord> found;
  BasicTokenizer(casing).split(text, found);
  Words result;
  for (const BasicWord& word : found) result.push_back(word.text);
  return result;
}

TEST(BasicTokenizer, SplitsAtSpaceAndPunctuation) {
  EXPECT_EQ(words("Hello, World!"), (Words{"hello", ",", "world", "!"}));
  EXPECT_EQ(words("don't"), (Words{"don", "'", "t"}));
  EXPECT_EQ(words("$5.00 ^_^ a`b~"),
            (Words{"$", "5", ".", "00", "^", "_", "^", "a", "`", "b", "~"}));
  EXPECT_EQ(words("\u201cquotes\u201d \u2014 dash\u2026"),
            (Words{"\u201c", "quotes", "\u201d", "\u2014", "dash", "\u2026"}));
  EXPECT_EQ(words("x\u00b2 \u00bd"), (Words{"x\u00b2", "\u00bd"}));
  EXPECT_EQ(words(""), Words{});
  EXPECT_EQ(words(" \n"), Words{});
}

TEST(BasicTokenizer, KnowsUnicodeSpaces) {
  EXPECT_EQ(words("A\u00a0B\u2003C"), (Words{"a", "b", "c"}));
  EXPECT_EQ(words("a\u2028b\u2029c"), (Words{"a", "b", "c"}));
}

TEST(BasicTokenizer, DropsControlsWithoutSplitting) {
  EXPECT_EQ(words("tab\tnl\nvt\vff\f"), (Words{"tab", "nl", "vtff"}));
  EXPECT_EQ(words("soft\u00adhyphen zero\u200bwidth \ufeffbom"),
            (Words{"softhyphen", "zerowidth", "bom"}));
  EXPECT_EQ(words("priv\ue000use"), (Words{"privuse"}));
  EXPECT_EQ(words(std::string_view("nu\0l", 4)), (Words{"nul"}));
  EXPECT_EQ(words("a\ufffd\u0085z"), (Words{"az"}));
}

TEST(BasicTokenizer, StripsAccentsAndCase) {
  EXPECT_EQ(words("caf\u00e9 na\u00efve"), (Words{"cafe", "naive"}));
  EXPECT_EQ(words("e\u0301\u0327"), (Words{"e"}));
  EXPECT_EQ(words("\u0130stanbul"), (Words{"istanbul"}));
  EXPECT_EQ(words("\uff21\uff22\uff0c"), (Words{"\uff41\uff42", "\uff0c"}));
  EXPECT_EQ(words("\ud55c\uad6d\uc5b4"),
            (Words{"\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165"}));
  EXPECT_EQ(words("\u0301"), Words{});
}

// Where Google's Python and its derivatives differ from Hugging Face's library, follows the
// library.
TEST(BasicTokenizer, FollowsTheLibraryWhereReferencesDiffer) {
  // Lower-casing considers single characters, so there is no final sigma (Python: U+03C2).
  EXPECT_EQ(words("\u039f\u0394\u039f\u03a3 \u03a3"),
            (Words{"\u03bf\u03b4\u03bf\u03c3", "\u03c3"}));
  // Unassigned code points stay (Python: dropped).
  EXPECT_EQ(words("un\u0378assigned"), (Words{"un\u0378assigned"}));
  // Capital sharp s becomes the small one, as in Python.
  EXPECT_EQ(words("\u00df \u1e9e"), (Words{"\u00df", "\u00df"}));
  // A letter that decomposes into punctuation and an accent.
  EXPECT_EQ(words("a\u2260b"), (Words{"a", "=", "b"}));
  EXPECT_EQ(words("a\u2260b", Casing::kCased), (Words{"a\u2260b"}));
}

TEST(BasicTokenizer, LowerCasedTextKeepsItsAccents) {
  const auto lower = [](std::string_view text) { return words(text, Casing::kLowerCased); };
  EXPECT_EQ(lower("\u00c4RGER \u00fcber CAF\u00c9"),
            (Words{"\u00e4rger", "\u00fcber", "caf\u00e9"}));
  // An accent of its own stays one; nothing is composed or decomposed.
  EXPECT_EQ(lower("E\u0301\u0327"), (Words{"e\u0301\u0327"}));
  EXPECT_EQ(lower("\ud55c"), (Words{"\ud55c"}));
  EXPECT_EQ(lower("\u0130stanbul \u1e9e"), (Words{"i\u0307stanbul", "\u00df"}));
  EXPECT_EQ(lower("a\u2260b"), (Words{"a\u2260b"}));
}

TEST(BasicTokenizer, MakesIdeographsWords) {
  EXPECT_EQ(words("\u535a\u63a8zz"), (Words{"\u535a", "\u63a8", "zz"}));
  EXPECT_EQ(words("\U00020000x"), (Words{"\U00020000", "x"}));
  // The library's range for extension E starts at 2B920, not 2B820.
  EXPECT_EQ(words("\U0002b820x"), (Words{"\U0002b820x"}));
  EXPECT_EQ(words("\U0002b920x"), (Words{"\U0002b920", "x"}));
}

TEST(BasicTokenizer, CasedKeepsWordsAsTheyAre) {
  EXPECT_EQ(words("Caf\u00e9 \u0130X, \ud55c", Casing::kCased),
            (Words{"Caf\u00e9", "\u0130X", ",", "\ud55c"}));
}

TEST(BasicTokenizer, GivesPlacesInTheOriginal) {
  const std::string text = "  \u00ad\u00c9t\u00e9\u0301, x";
  std::vector<BasicWord> found;
  BasicTokenizer(Casing::kUncased).split(text, found);
  // Dropped characters at the ends are outside, and a lost accent too.
  EXPECT_EQ(found, (std::vector<BasicWord>{{"ete", 4, 9}, {",", 11, 12}, {"x", 13, 14}}));
}

}  // namespace
}  // namespace onebit::text
