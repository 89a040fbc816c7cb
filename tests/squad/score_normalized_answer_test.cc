#include "onebit/apps/squad/score.h"

#include <gtest/gtest.h>

namespace onebit::squad {
namespace {

TEST(NormalizedAnswer, LosesCasePunctuationArticlesAndSpaces) {
  EXPECT_EQ(normalized_answer("The  Caf\u00c9, (an) A-Team!"), "caf\u00e9 ateam");
  EXPECT_EQ(normalized_answer("a the AN"), "");
  EXPECT_EQ(normalized_answer("theatre banana"), "theatre banana") << "whole words alone";
}

TEST(NormalizedAnswer, SeesWordsOfAnyScript) {
  EXPECT_EQ(normalized_answer("a\u4e2d"), "a\u4e2d") << "an ideograph continues the word";
  EXPECT_EQ(normalized_answer("a\u2014the\u00a0b"), "\u2014 b") << "a dash and a space do not";
}

TEST(AnswerWords, AreThoseOfTheNormalizedAnswer) {
  EXPECT_EQ(answer_words("The cat's whiskers"), (std::vector<std::string>{"cats", "whiskers"}));
}

}  // namespace
}  // namespace onebit::squad
