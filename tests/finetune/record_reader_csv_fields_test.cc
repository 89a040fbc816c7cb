#include "onebit/training/finetune/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::finetune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::vector<std::string>> records_of(std::string_view text) {
  const TextFiles files;
  corpus::FileLines lines(files.write("a.csv", text));
  std::vector<std::vector<std::string>> records;
  for (std::string line; lines.next(line);) csv_fields(lines, line, records.emplace_back());
  return records;
}

TEST(CsvFields, PlainAndQuoted) {
  EXPECT_THAT(records_of("a,b,c\r\n1,,\r\n\"x, \"\"y\"\"\",z,\"\"\n"),
              ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("1", "", ""),
                          ElementsAre("x, \"y\"", "z", "")));
  // A quote inside a field that does not start with one is an ordinary character.
  EXPECT_THAT(records_of("5\" disk,b\n"), ElementsAre(ElementsAre("5\" disk", "b")));
}

TEST(CsvFields, ALineEndInsideQuotes) {
  EXPECT_THAT(records_of("\"one\n\ntwo\",b\n\"c\r\nd\"\r\ne\n"),
              ElementsAre(ElementsAre("one\n\ntwo", "b"), ElementsAre("c\r\nd"), ElementsAre("e")));
}

TEST(CsvFields, Errors) {
  EXPECT_THAT(message_of([] { records_of("a,b\nc,\"d\ne\n"); }),
              HasSubstr("a.csv:2: the quote that opens field 2 is never closed"));
  const std::string behind = message_of([] { records_of("\"a\"b,c\n"); });
  EXPECT_THAT(behind, HasSubstr("a.csv:1: field 1 continues after its closing quote"));
  EXPECT_THAT(behind, HasSubstr("twice"));
}

}  // namespace
}  // namespace onebit::finetune
