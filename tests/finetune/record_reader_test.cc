#include "onebit/training/finetune/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::finetune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kCsv = FileFormat::kCsv;
constexpr auto kJson = FileFormat::kJsonLines;

// The selected fields of every record, with the line of each record in front.
std::vector<std::vector<std::string>> read(std::string_view text,
                                           const std::vector<std::string>& columns,
                                           const RecordOptions& options = {}) {
  const TextFiles files;
  RecordReader reader(files.write("f", text), options);
  reader.select(columns);
  std::vector<std::vector<std::string>> records;
  for (std::vector<Field> fields; reader.next(fields);) {
    records.push_back({std::to_string(reader.line())});
    for (const Field& field : fields) records.back().push_back(field.text);
  }
  return records;
}

std::string error_of(std::string_view text, const std::vector<std::string>& columns,
                     const RecordOptions& options = {}) {
  return message_of([&] { read(text, columns, options); });
}

TEST(RecordReader, FormatByEnding) {
  EXPECT_EQ(format_of("x/train.tsv"), FileFormat::kTsv);
  EXPECT_EQ(format_of("train.csv.gz"), FileFormat::kCsv);
  EXPECT_EQ(format_of("train.jsonl.xz"), FileFormat::kJsonLines);
  EXPECT_THAT(message_of([] { format_of("train.parquet"); }), HasSubstr("give the format"));
}

TEST(RecordReader, ColumnsByNameAndNumber) {
  const std::string text = "id\tlabel\ttext\n1\tx\tone\r\n2\ty\ttwo\n";
  EXPECT_THAT(read(text, {"text", "label"}),
              ElementsAre(ElementsAre("2", "one", "x"), ElementsAre("3", "two", "y")));
  EXPECT_THAT(read(text, {"3", "1"}),
              ElementsAre(ElementsAre("2", "one", "1"), ElementsAre("3", "two", "2")));
  EXPECT_THAT(read("a\tb\n", {"2"}, {.has_header = false}), ElementsAre(ElementsAre("1", "b")));
}

// GLUE's files are read without quotes: a quotation mark is a character like any other.
TEST(RecordReader, TsvHasNoQuotes) {
  EXPECT_THAT(
      read("sentence\tlabel\n\"Yes,\" he said\t1\n\"open\t0\n", {"sentence", "label"}),
      ElementsAre(ElementsAre("2", "\"Yes,\" he said", "1"), ElementsAre("3", "\"open", "0")));
}

TEST(RecordReader, Csv) {
  EXPECT_THAT(read("text,label\n\"a,\nb\",x\nc,y\n", {"text", "label"}, {.format = kCsv}),
              ElementsAre(ElementsAre("2", "a,\nb", "x"), ElementsAre("4", "c", "y")));
}

TEST(RecordReader, JsonLines) {
  const TextFiles files;
  RecordReader reader(files.write("f", R"({"text": "a\tb", "n": 3, "on": true, "l": ["x", 2]}

{"l": [], "n": 0.5, "text": "c", "on": "yes", "more": null})"),
                      {.format = kJson});
  EXPECT_THAT(reader.names(), ElementsAre("text", "n", "on", "l"));
  reader.select({"n", "text", "l", "on"});
  std::vector<Field> fields;
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(fields[0].text, "3");
  EXPECT_EQ(fields[0].kind, Field::Kind::kNumber);
  EXPECT_EQ(fields[1].text, "a\tb");
  EXPECT_EQ(fields[2].kind, Field::Kind::kList);
  EXPECT_THAT(fields[2].list, ElementsAre("x", "2"));
  EXPECT_EQ(fields[3].text, "true");
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(reader.line(), 3u);
  EXPECT_EQ(fields[0].text, "0.5");
  EXPECT_TRUE(fields[2].list.empty());
  EXPECT_FALSE(reader.next(fields));
}

TEST(RecordReader, TheFirstObjectHasKeys) {
  EXPECT_THAT(error_of("{}\n{\"text\": \"a\"}\n", {"text"}, {.format = kJson}),
              HasSubstr("f:1: is an object without any key"));
}

TEST(RecordReader, EmptyLinesAreNoRecordsOfSeveralColumns) {
  EXPECT_THAT(read("text\tlabel\na\tx\n\n\r\n", {"text"}), ElementsAre(ElementsAre("2", "a")));
  // In a file of one column an empty line is an empty text, which keeps its place.
  EXPECT_THAT(read("text\na\n\n\nb\n\n", {"text"}),
              ElementsAre(ElementsAre("2", "a"), ElementsAre("3", ""), ElementsAre("4", ""),
                          ElementsAre("5", "b")));
  EXPECT_THAT(read("\n\na\n", {"1"}, {.has_header = false}),
              ElementsAre(ElementsAre("1", ""), ElementsAre("2", ""), ElementsAre("3", "a")));
  EXPECT_THAT(read("text\tlabel\na\tx\n\nb\ty\n", {"text"}),
              ElementsAre(ElementsAre("2", "a"), ElementsAre("4", "b")));
  EXPECT_THAT(read("1,2\n\n\r\n3,4\n", {"1"}, {.format = kCsv, .has_header = false}),
              ElementsAre(ElementsAre("1", "1"), ElementsAre("4", "3")));
  EXPECT_THAT(read("\n\r\ntext\tlabel\na\tx\n", {"text"}), ElementsAre(ElementsAre("4", "a")));
  EXPECT_THAT(error_of("\n\ntext\tlabel\n", {"word"}),
              HasSubstr("f:3: there is no column \"word\""));
  EXPECT_THAT(read("\n1,2\n\n3,4\n", {"2"}, {.format = kCsv, .has_header = false}),
              ElementsAre(ElementsAre("2", "2"), ElementsAre("4", "4")));
  EXPECT_THAT(read("\n\"1, 2\"\n", {"1"}, {.format = kCsv, .has_header = false}),
              ElementsAre(ElementsAre("1", ""), ElementsAre("2", "1, 2")));
  EXPECT_THAT(error_of("\n\n", {"text"}), HasSubstr("f: is empty"));
  EXPECT_THAT(error_of("text\tlabel\na\n\nb\ty\n", {"text"}),
              HasSubstr("f:2: has 1 field, the header has 2"));
}

// Between JSON texts white space says nothing.
TEST(RecordReader, BlankLinesBetweenJsonLinesAreNoRecords) {
  EXPECT_THAT(read("{\"a\": \"x\"}\n \t\r\n  \n{\"a\": \"y\"}\n ", {"a"},
                   {.format = FileFormat::kJsonLines}),
              ElementsAre(ElementsAre("1", "x"), ElementsAre("4", "y")));
}

// pandas writes its index so.
TEST(RecordReader, AColumnWithoutANameIsListedByItsNumber) {
  const TextFiles files;
  RecordReader reader(files.write("f.csv", ",text\n0,a\n"), {.format = FileFormat::kCsv});
  reader.select({"text"});
  EXPECT_THAT(reader.unread("FIX"),
              HasSubstr("a column is not read: number 1, without a name; to read others, FIX"));
}

TEST(RecordReader, ShortRecordsMayBeLeftOut) {
  const TextFiles files;
  RecordReader reader(
      files.write("f", "id\tq1\tq2\tsame\n1\ta\tb\t0\n2\tbroken\n3\tc\td\t1\tmore\n"),
      {.skip_short = true});
  reader.select({"q1", "same"});
  std::vector<Field> fields;
  ASSERT_TRUE(reader.next(fields));
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(fields[0].text, "c");
  EXPECT_EQ(fields[1].text, "1");
  EXPECT_FALSE(reader.next(fields));
  EXPECT_EQ(reader.skipped(), 1);
}

TEST(RecordReader, ErrorsNamePlaceAndFix) {
  EXPECT_THAT(error_of("", {"text"}), HasSubstr("f: is empty"));
  EXPECT_THAT(error_of("", {"text"}, {.format = kJson}), HasSubstr("is empty"));
  EXPECT_THAT(error_of("txt\tlabel\n", {"text"}),
              HasSubstr("f:1: there is no column \"text\" (did you mean \"txt\"?); the header has "
                        "txt, label"));
  EXPECT_THAT(error_of("a\tb\n", {"3"}), HasSubstr("there is no column 3: the header has 2"));
  EXPECT_THAT(error_of("a\tb\n", {"02"}), HasSubstr("there is no column \"02\""));
  EXPECT_THAT(error_of("a\tb\n", {"3"}, {.has_header = false}),
              HasSubstr("f:1: there is no column 3: the line has 2 fields"));
  EXPECT_THAT(error_of("a\tb\n", {"text"}, {.has_header = false}), HasSubstr("without a header"));
  EXPECT_THAT(error_of("a\ta\n", {"a"}), HasSubstr("two columns are called \"a\""));
  const std::string fields = error_of("a\tb\n1\t2\n1\t2\t3\n", {"a"});
  EXPECT_THAT(fields, HasSubstr("f:3: has 3 fields, the header has 2"));
  EXPECT_THAT(fields, HasSubstr("TSV has no quotes"));
  EXPECT_THAT(error_of("a,b\n1,2,3\n", {"a"}, {.format = kCsv}), HasSubstr("put quotes around"));
  EXPECT_THAT(error_of("1\t2\n1\n", {"1"}, {.has_header = false}),
              HasSubstr("f:2: has 1 field, the first line has 2"));
  const auto json_error = [](const char* text) { return error_of(text, {"t"}, {.format = kJson}); };
  EXPECT_THAT(error_of("{\"txt\": 1}\n", {"text"}, {.format = kJson}),
              HasSubstr("f:1: has no key `text` (did you mean `txt`?); it has txt"));
  EXPECT_THAT(json_error("{\"t\": \"a\"}\n{\"u\": 1}\n"), HasSubstr("f:2: has no key `t`"));
  EXPECT_THAT(json_error("{\"t\": \"a\"}\n{\"t\": \"b\"\n"), HasSubstr("f:2:1:"));
  EXPECT_THAT(json_error("[1]\n"), HasSubstr("f:1: is not a JSON object"));
  EXPECT_THAT(json_error("{\"t\": null}\n"), HasSubstr("f:1: `t` is null"));
  EXPECT_THAT(json_error("{\"t\": NaN}\n"), HasSubstr("or not a number (NaN)"));
  EXPECT_THAT(json_error("{\"t\": {}}\n"), HasSubstr("`t` is an object"));
  EXPECT_THAT(json_error("{\"t\": [[1]]}\n"), HasSubstr("a list of other things"));
}

TEST(RecordReader, WhatPythonWritesIsRead) {
  EXPECT_THAT(
      read("{\"t\": \"a \\ud83d\", \"x\": NaN}\n{\"t\": \"b\", \"x\": [1e999, -Infinity]}\n", {"t"},
           {.format = kJson}),
      ElementsAre(ElementsAre("1", "a \xEF\xBF\xBD"), ElementsAre("2", "b")));
  // An error keeps its place.
  EXPECT_THAT(error_of("{\"t\": \"a\", \"x\": NaN, y}\n", {"t"}, {.format = kJson}),
              HasSubstr("f:1:1:22"));
}

// pandas writes the whole numbers of a column with gaps as 1.0.
TEST(RecordReader, WholeNumbersHaveNoFraction) {
  EXPECT_THAT(
      read("{\"l\": 1.0}\n{\"l\": 2}\n{\"l\": 0.5}\n{\"l\": -3.0}\n", {"l"}, {.format = kJson}),
      ElementsAre(ElementsAre("1", "1"), ElementsAre("2", "2"), ElementsAre("3", "0.5"),
                  ElementsAre("4", "-3")));
}

TEST(RecordReader, AKeyThatWasNotExpectedIsAnError) {
  const TextFiles files;
  RecordReader reader(files.write("f",
                                  "{\"a\": \"x\", \"c\": null}\n{\"a\": \"y\", \"b\": null}\n"
                                  "{\"a\": \"z\", \"b\": \"lost\"}\n"),
                      {.format = kJson});
  EXPECT_TRUE(reader.has_column("c"));
  EXPECT_FALSE(reader.has_value("c"));
  reader.select({"a"});
  reader.expect_no({"b", "c"}, nullptr, "give --b");
  std::vector<Field> fields;
  ASSERT_TRUE(reader.next(fields));
  ASSERT_TRUE(reader.next(fields)) << "null is no value";
  const std::string message = message_of([&] { reader.next(fields); });
  EXPECT_THAT(message, HasSubstr("f:3: has the key `b`, which the first record (line 1)"));
  EXPECT_THAT(message, HasSubstr("give --b"));
}

TEST(RecordReader, BadRecordsAreLeftOutWhereTheOptionIsGiven) {
  const std::string lines =
      "nonsense\n{\"t\": \"a\"}\n{\"u\": 1}\n\xFF\n{\"t\": {}}\n{\"t\": \"b\"}\n{\"t\": null}\n";
  EXPECT_THAT(read(lines, {"t"}, {.format = kJson, .left_out = corpus::LeftOut::kBad}),
              ElementsAre(ElementsAre("2", "a"), ElementsAre("6", "b")));
  EXPECT_THAT(error_of("{\"t\": \"a\"}\n{\"t\": null}\n{\"u\": 1}\n", {"t"},
                       {.format = kJson, .left_out = corpus::LeftOut::kMissing}),
              HasSubstr("f:3: has no key `t`; --skip-bad-records leaves such records out"));
  EXPECT_THAT(error_of("1\n2\n", {"t"}, {.format = kJson, .left_out = corpus::LeftOut::kBad}),
              HasSubstr("contains no record that can be used; 2 records were left out: "));
  EXPECT_THAT(read("a\tb\n1\t2\n3\n4\t5\n", {"a"}, {.left_out = corpus::LeftOut::kBad}),
              ElementsAre(ElementsAre("2", "1"), ElementsAre("4", "4")));
}

// A quote that is never closed takes the rest of the file with it.
TEST(RecordReader, AnOpenQuoteIsAnErrorWithTheOption) {
  EXPECT_THAT(
      error_of("a,b\n1,\"2\n3,4\n", {"a"}, {.format = kCsv, .left_out = corpus::LeftOut::kBad}),
      HasSubstr("never closed"));
}

TEST(RecordReader, ShortRecordsMayBeFilled) {
  EXPECT_THAT(read("id\ta\tb\n1\tx\n2\ty\tz\n", {"id", "b"}, {.fill_short = true}),
              ElementsAre(ElementsAre("2", "1", ""), ElementsAre("3", "2", "z")));
}

}  // namespace
}  // namespace onebit::finetune
