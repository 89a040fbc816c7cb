#include "onebit/apps/tag/sentence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::tag {
namespace {

Sentence sentence(const std::vector<std::string>& words, std::vector<std::string> tags) {
  Sentence one;
  for (const std::string& word : words) one.add_word(word);
  one.tags = std::move(tags);
  return one;
}

TEST(Sentence, WordsStandBetweenSpaces) {
  const Sentence one = sentence({"In", "New York", "!"}, {});
  EXPECT_EQ(one.text, "In New York !");
  EXPECT_THAT(one.words, testing::ElementsAre(Word{0, 2}, Word{3, 11}, Word{12, 13}));
  EXPECT_EQ(one.word(1), "New York");
}

TEST(Sentence, PlacesCountFromOne) {
  Sentence one = sentence({"In", "Rome"}, {});
  one.line = 7;
  EXPECT_EQ(place_of("train.conll", one, 1), "train.conll:7, word 2 (Rome)");
}

TEST(Sentence, TheChecksumSeesEveryChange) {
  const auto of = [](std::vector<Sentence> all) { return checksum({.source = "", .all = all}); };
  const Sentence whole = sentence({"a", "b", "c"}, {"X", "O", "O"});
  const uint32_t crc = of({whole});
  EXPECT_EQ(crc, of({whole}));
  EXPECT_NE(crc, of({sentence({"a", "b", "d"}, {"X", "O", "O"})}));
  EXPECT_NE(crc, of({sentence({"a", "b", "c"}, {"O", "X", "O"})}));
  EXPECT_NE(crc, of({sentence({"a", "b c"}, {"X", "O"})}));
  EXPECT_NE(crc, of({sentence({"a"}, {"X"}), sentence({"b", "c"}, {"O", "O"})}));
}

}  // namespace
}  // namespace onebit::tag
