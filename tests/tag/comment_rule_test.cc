#include "onebit/apps/tag/comment_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::tag {
namespace {

using testing::ElementsAre;

constexpr RowForm kTwoBySpaces = {.has_tabs = false, .columns = 2};
constexpr RowForm kTwoByTabs = {.has_tabs = true, .columns = 2};

HashLine judged(std::string_view line, const RowForm& words) {
  return judge_hash_line(line, words, Comments::kAuto);
}

TEST(CommentRule, RowsAreSplitAtTabsOrBlanks) {
  EXPECT_THAT(split_row(" a \tb", false), ElementsAre("a", "b"));
  EXPECT_THAT(split_row("a b\t\tc", true), ElementsAre("a b", "", "c"));
}

TEST(CommentRule, WhatIsNoRowIsAComment) {
  for (const char* line : {"# key = value", "# text =", "#key = 1 2 3", "# one two three", "#",
                           "#a", "# a\tb", "#begin document (a); part 000", "#end document"}) {
    EXPECT_EQ(judged(line, kTwoBySpaces), HashLine::kComment) << line;
  }
  EXPECT_EQ(judged("# O", kTwoByTabs), HashLine::kComment);
  EXPECT_EQ(judged("#\tO", {.has_tabs = true, .columns = 2, .token_column = 1}),
            HashLine::kComment);
}

TEST(CommentRule, WhatMustBeARowIsAWord) {
  for (const char* line : {"# O", "# B-LOC", "# S", "#tag O", "#tag NOUN"}) {
    EXPECT_EQ(judged(line, kTwoBySpaces), HashLine::kWord) << line;
  }
  EXPECT_EQ(judged("#\tSYM", kTwoByTabs), HashLine::kWord);
  EXPECT_EQ(judged("#", {.columns = 1}), HashLine::kWord);
}

TEST(CommentRule, WhatMayBeBothIsUnclear) {
  for (const char* line : {"# doc1", "# SYM", "# =", "#sent 12"}) {
    EXPECT_EQ(judged(line, kTwoBySpaces), HashLine::kUnclear) << line;
  }
}

TEST(CommentRule, AmongTagsOfEntitiesWhatIsNoTagIsAComment) {
  const RowForm entities = row_form({"a", "O"}, false, 0, 1);
  EXPECT_TRUE(entities.has_entities);
  for (const char* line : {"# doc1", "# domain=en", "# [2009-10-17]"}) {
    EXPECT_EQ(judged(line, entities), HashLine::kComment) << line;
    EXPECT_EQ(judged(line, row_form({"a", "DET"}, false, 0, 1)), HashLine::kUnclear) << line;
  }
  for (const char* line : {"# PER", "# geo-loc", "# Straße"}) {
    EXPECT_EQ(judged(line, entities), HashLine::kUnclear) << line;
  }
  // A word, not a tag.
  EXPECT_FALSE(row_form({"I"}, false, 0, 0).has_entities);
}

TEST(CommentRule, ATagOfEntitiesMakesARowAlsoBehindAnotherColumn) {
  const RowForm second = {.has_tabs = true, .columns = 3, .token_column = 1, .tag_column = 2};
  EXPECT_EQ(judged("#\tGBP\tO", second), HashLine::kWord);
  EXPECT_EQ(judged("#\tGBP\tx", second), HashLine::kComment);
}

TEST(CommentRule, TheOptionDecides) {
  for (const char* line : {"# O", "# doc1", "# key = value"}) {
    EXPECT_EQ(judge_hash_line(line, kTwoBySpaces, Comments::kYes), HashLine::kComment);
    EXPECT_EQ(judge_hash_line(line, kTwoBySpaces, Comments::kNo), HashLine::kWord);
  }
}

}  // namespace
}  // namespace onebit::tag
