#include "onebit/tag/tag_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sentences tagged(const std::vector<std::vector<std::string>>& tags) {
  Sentences all = {.source = "train.conll", .all = {}};
  for (const auto& list : tags) {
    Sentence& one = all.all.emplace_back();
    one.line = 10 * all.all.size();
    for (size_t i = 0; i < list.size(); ++i) one.add_word("word");
    one.tags = list;
  }
  return all;
}

TEST(TagSet, TheTagsThatOccur) {
  EXPECT_THAT(find_tags(tagged({{"I-X", "O"}, {"B-X", "A", "B-X"}})),
              ElementsAre("O", "A", "B-X", "I-X"));
  EXPECT_THAT(find_tags(tagged({{"10", "9", "0"}})), ElementsAre("0", "9", "10"));
  EXPECT_THAT(message_of([] {
                find_tags(tagged({{"O", "O"}}));
              }),
              HasSubstr("train.conll: every tag is \"O\""));
}

TEST(TagSet, TargetsOfAllWords) {
  const TagSet tags({"O", "B-X"});
  EXPECT_EQ(tags.size(), 2);
  EXPECT_THAT(tags.targets_of(tagged({{"O", "B-X"}, {}, {"O"}}), ""), ElementsAre(0, 1, 0));
  const std::string message = message_of([&] {
    tags.targets_of(tagged({{"O"}, {"O", "I-X"}}), "do this");
  });
  EXPECT_THAT(message, HasSubstr("train.conll:20, word 2 (word): the tag \"I-X\" is none of the "
                                 "model's, which are O, B-X; do this"));
}

}  // namespace
}  // namespace onebit::tag
