#include "onebit/data/corpus/sentence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/message_of.h"

namespace onebit::corpus {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts_of(const std::string& lines, LeftOut rule = LeftOut::kNothing,
                                  std::string* summary = nullptr) {
  std::vector<std::string> texts;
  LeftOutRecords left_out(rule);
  for_each_json_text({.source = "f", .first_line = 7, .text = lines}, left_out,
                     [&](std::string_view text) { texts.emplace_back(text); });
  if (summary != nullptr) *summary = left_out.summary();
  return texts;
}

TEST(JsonText, IsThatOfTheTopLevelAlone) {
  EXPECT_THAT(texts_of("{\"id\": 1, \"text\": \"l\\u006cama\"}\n\n"
                       "{\"meta\": {\"text\": \"no\"}, \"text\": \"a\\nb\", \"x\": [1, 2.5]}\n"
                       "{\"text\": \"\"}"),
              ElementsAre("llama", "a\nb", ""));
}

TEST(JsonText, BadLinesAreErrorsWithPathAndLine) {
  const auto message = [](const std::string& line) {
    return message_of(
        [&] { texts_of("{\"text\": \"fine\"}\n" + line + "\n{\"text\": \"fine\"}\n"); });
  };
  EXPECT_THAT(message("{\"text\": \"cut"), AllOf(HasSubstr("f:8"), HasSubstr("invalid JSON")));
  EXPECT_THAT(message("{\"text\": \"a\"} x"), AllOf(HasSubstr("f:8"), HasSubstr("invalid JSON")));
  EXPECT_THAT(message("{\"body\": \"a\"}"), AllOf(HasSubstr("f:8"), HasSubstr("no \"text\"")));
  EXPECT_THAT(message("{\"text\": 5}"), AllOf(HasSubstr("f:8"), HasSubstr("not a string")));
  EXPECT_THAT(message("{\"text\": [\"a\"]}"), AllOf(HasSubstr("f:8"), HasSubstr("not a string")));
  EXPECT_THAT(message("{\"text\": null}"), HasSubstr("f:8: \"text\" is null"));
  EXPECT_THAT(message("{\"text\": \"a\", \"text\": \"b\"}"), HasSubstr("given twice"));
  EXPECT_THAT(message("[\"a\"]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("\"a\""), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("5"), HasSubstr("not a JSON object"));
}

// Python's json module writes all of these, and reads them.
TEST(JsonText, WhatPythonWritesIsRead) {
  EXPECT_THAT(texts_of("{\"score\": NaN, \"text\": \"a\"}\n"
                       "{\"x\": [Infinity, -Infinity, 1e999, -1e400], \"text\": \"b\"}\n"
                       "{\"text\": \"cut \\ud83d\"}\n"
                       "{\"text\": \"\\ude00 \\ud83d\\ude00 \\ud83dx\"}\n"
                       "{\"text\": \"NaN Infinity 1e999\", \"n\": NaN}"),
              ElementsAre("a", "b", "cut \xEF\xBF\xBD",
                          "\xEF\xBF\xBD \xF0\x9F\x98\x80 \xEF\xBF\xBDx", "NaN Infinity 1e999"));
}

TEST(JsonText, RecordsWithoutATextAreLeftOutAndCounted) {
  std::string summary;
  EXPECT_THAT(texts_of("{\"text\": null}\n{\"text\": \"a\"}\n{\"text\": NaN}\n", LeftOut::kMissing,
                       &summary),
              ElementsAre("a"));
  EXPECT_THAT(summary, AllOf(HasSubstr("2 records were left out: f:7: "), HasSubstr("f:9: ")));
}

TEST(JsonText, BadRecordsAreLeftOutWhereTheOptionIsGiven) {
  const std::string lines =
      "{\"text\": \"a\"}\n{\"text\": 5}\n{\"te\n\xFF\n{\"text\": \"b\"}\n[]\n";
  EXPECT_THAT(message_of([&] { texts_of(lines, LeftOut::kMissing); }),
              AllOf(HasSubstr("f:8: "), HasSubstr("--skip-bad-records")));
  std::string summary;
  EXPECT_THAT(texts_of(lines, LeftOut::kBad, &summary), ElementsAre("a", "b"));
  EXPECT_THAT(summary, AllOf(HasSubstr("4 records were left out: f:8: "), HasSubstr("; f:9: "),
                             HasSubstr("; f:10: "), testing::EndsWith("; ...")));
}

TEST(JsonText, MessagesAreNotTheLibrarys) {
  for (const char* line : {"{\"text\": \"cut", "{\"text\": \"a\" x}", "nonsense", "{\"a\": nul}"}) {
    EXPECT_THAT(message_of([&] { texts_of(line); }),
                AllOf(HasSubstr("f:7: column "), testing::Not(HasSubstr("exception"))));
  }
}

}  // namespace
}  // namespace onebit::corpus
