#include "onebit/apps/tag/tag_set.h"

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

TEST(TagSet, TagsThatTheModelLacksAreCountedInAnEvaluation) {
  const TagSet tags({"O", "B-X", "B-Y"});
  const Sentences sentences =
      tagged({{"B-GPE", "I-GPE", "O", "B-X"}, {}, {"B-Y", "I-Y", "B-GPE"}, {"O"}});
  const EvaluationTargets found = tags.evaluation_targets(sentences, Scheme::kIob2, "do this");
  EXPECT_THAT(found.targets, ElementsAre(-1, -1, 0, 1, 2, -1, -1, 0));
  EXPECT_THAT(found.unknown, ElementsAre("B-GPE", "I-GPE", "I-Y"));
  EXPECT_EQ(found.unknown_words, 4);
  EXPECT_EQ(found.unknown_entities, 3);
  EXPECT_THAT(found.warning("test.conll"),
              HasSubstr("test.conll: 3 entities (4 words) have tags that the model does not have "
                        "(B-GPE, I-GPE, I-Y)"));
}

TEST(TagSet, AnEvaluationOfKnownTagsHasNothingToWarnOf) {
  const TagSet tags({"O", "B-X"});
  const Sentences sentences = tagged({{"O", "B-X"}, {"O"}});
  const EvaluationTargets found = tags.evaluation_targets(sentences, Scheme::kIob2, "");
  EXPECT_EQ(found.targets, tags.targets_of(sentences, ""));
  EXPECT_EQ(found.unknown_words, 0);
  EXPECT_EQ(found.warning("test.conll"), "");
}

TEST(TagSet, PlainTagsThatTheModelLacksAreWrongWords) {
  const EvaluationTargets found =
      TagSet({"NN", "VB"}).evaluation_targets(tagged({{"NN", "SYM"}, {"VB"}}), Scheme::kPlain, "");
  EXPECT_THAT(found.targets, ElementsAre(0, -1, 1));
  EXPECT_EQ(found.unknown_entities, 0);
  EXPECT_THAT(found.warning("test.conll"),
              HasSubstr("test.conll: 1 words have tags that the model does not have (SYM)"));
}

TEST(TagSet, WhatCannotBeEvaluatedIsRefused) {
  const TagSet tags({"O", "B-X"});
  const auto error = [&](const Sentences& sentences, Scheme scheme) {
    return message_of([&] { tags.evaluation_targets(sentences, scheme, "do this"); });
  };
  EXPECT_THAT(error(tagged({{"O"}, {"O", "S-X"}}), Scheme::kIob2),
              HasSubstr("train.conll:20, word 2 (word): the tag \"S-X\" is none of the model's, "
                        "which are O, B-X; do this"));
  EXPECT_THAT(error(tagged({{"NN"}, {"VB"}}), Scheme::kPlain),
              HasSubstr("train.conll: no word has one of the model's tags, which are O, B-X; there "
                        "are NN, VB"));
}

}  // namespace
}  // namespace onebit::tag
