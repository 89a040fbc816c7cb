#include "onebit/data/text/normal_form.h"

#include <gtest/gtest.h>

namespace onebit::text {
namespace {

TEST(NormalizedWord, KnowsWhereItsCharactersComeFrom) {
  NormalizedWord word;
  word.assign("R\u00e9sum\u00e9", Characters::get(Casing::kUncased));
  EXPECT_EQ(word.text(), "resume");
  EXPECT_EQ(word.characters(), 6);
  const NormalizedWord::Range first = word.raw_range(0, 2), last = word.raw_range(5, 6);
  EXPECT_EQ(first.begin, 0u);
  EXPECT_EQ(first.end, 3u) << "the accented letter has two bytes";
  EXPECT_EQ(last.begin, 6u);
  EXPECT_EQ(last.end, 8u);
}

TEST(NormalizedWord, CasedKeepsTheSpelling) {
  NormalizedWord word;
  word.assign("R\u00e9sum\u00e9", Characters::get(Casing::kCased));
  EXPECT_EQ(word.text(), "R\u00e9sum\u00e9");
}

TEST(NormalizedWord, MayVanish) {
  NormalizedWord word;
  word.assign("\u0301", Characters::get(Casing::kUncased));
  EXPECT_EQ(word.text(), "");
  EXPECT_EQ(word.characters(), 0);
}

}  // namespace
}  // namespace onebit::text
