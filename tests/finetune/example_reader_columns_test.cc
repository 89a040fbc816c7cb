#include "onebit/training/finetune/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::finetune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> chosen(const char* header, const Columns& columns,
                                bool with_label = true) {
  const TextFiles files;
  RecordReader reader(files.write("f.tsv", header), {.has_header = columns.has_header()});
  return choose_columns(reader, columns, with_label, "give --text").list();
}

TEST(Columns, AHeaderIsThereUnlessAllColumnsAreNumbers) {
  EXPECT_TRUE(Columns{}.has_header());
  EXPECT_TRUE((Columns{.text = "text", .label = "2"}).has_header());
  EXPECT_FALSE((Columns{.text = "1", .label = "2"}).has_header());
  EXPECT_TRUE((Columns{.text = "1", .header = true}).has_header());
  EXPECT_FALSE((Columns{.header = false}).has_header());
}

TEST(Columns, UsualNamesAreFound) {
  EXPECT_THAT(chosen("id\ttext\tlabel\n", {}), ElementsAre("text", "label"));
  EXPECT_THAT(chosen("sentence1\tsentence2\tlabels\n", {}),
              ElementsAre("sentence1", "sentence2", "labels"));
  EXPECT_THAT(chosen("sentence\tx\n", {}, false), ElementsAre("sentence"));
  EXPECT_THAT(chosen("text_pair\ttext\n", {}, false), ElementsAre("text", "text_pair"));
}

// GLUE's names.
TEST(Columns, PairsOfUsualNamesAreFound) {
  EXPECT_THAT(chosen("idx\tquestion\tsentence\tlabel\n", {}),
              ElementsAre("question", "sentence", "label"));
  EXPECT_THAT(chosen("hypothesis\tpremise\tlabel\n", {}),
              ElementsAre("premise", "hypothesis", "label"));
  EXPECT_THAT(chosen("question1\tquestion2\tlabel\n", {}),
              ElementsAre("question1", "question2", "label"));
  EXPECT_THAT(chosen("premise\tlabel\n", {}), ElementsAre("premise", "label"));
  EXPECT_THAT(chosen("question\ttext\tlabel\n", {}), ElementsAre("text", "label"));
  EXPECT_THAT(chosen("question\tsentence\tlabel\n", {.text = "sentence"}),
              ElementsAre("sentence", "label"));
}

TEST(Columns, GivenNamesComeFirst) {
  EXPECT_THAT(chosen("text\tsentence2\tlabel\ttopic\n", {.text = "sentence2", .label = "topic"}),
              ElementsAre("sentence2", "topic"));
  EXPECT_THAT(chosen("a\tb\tc\n", {.text = "1", .text_pair = "2", .label = "3"}),
              ElementsAre("1", "2", "3"));
}

TEST(Columns, WhatIsMissingIsNamed) {
  const std::string message = message_of([] { chosen("a\tb\n", {}); });
  EXPECT_THAT(message, HasSubstr("f.tsv: which column contains the text?"));
  EXPECT_THAT(message, HasSubstr("there are a, b; give --text"));
  EXPECT_THAT(message_of([] { chosen("text\tb\n", {}); }),
              HasSubstr("which column contains the label? None is called label or labels"));
  EXPECT_THAT(message_of([] { chosen("text\tb\n", {.header = false}); }),
              HasSubstr("without a header"));
}

}  // namespace
}  // namespace onebit::finetune
