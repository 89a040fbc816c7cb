#include "onebit/training/finetune/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::finetune {
namespace {

using ::testing::HasSubstr;

TEST(ExampleReader, PairsWithLabels) {
  const TextFiles files;
  const Examples examples = read_examples(
      files.write("a.csv", "sentence1,sentence2,label\none,\"two, three\",yes\n"), {});
  ASSERT_EQ(examples.all.size(), 1u);
  EXPECT_TRUE(examples.has_pairs);
  EXPECT_EQ(examples.all[0].text, "one");
  EXPECT_EQ(examples.all[0].text_pair, "two, three");
  EXPECT_EQ(examples.all[0].label.text, "yes");
  EXPECT_EQ(examples.all[0].line, 2u);
}

TEST(ExampleReader, WithoutLabelsTheColumnIsNotLookedFor) {
  const TextFiles files;
  ExampleReader reader(files.write("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"\"}\n"), {},
                       false);
  Example example;
  ASSERT_TRUE(reader.next(example));
  EXPECT_EQ(example.text, "one");
  ASSERT_TRUE(reader.next(example));
  EXPECT_EQ(example.text, "");
  EXPECT_FALSE(reader.next(example));
  EXPECT_FALSE(reader.has_pairs());
}

TEST(ExampleReader, FormatAndFixAreTheLayouts) {
  const TextFiles files;
  const Path path = files.write("a.data", "x\ty\n");
  EXPECT_THAT(message_of([&] { read_examples(path, {}); }), HasSubstr("give the format"));
  EXPECT_THAT(message_of([&] {
                read_examples(path, {.format = FileFormat::kTsv, .column_fix = "look there"});
              }),
              HasSubstr("look there"));
}

TEST(ExampleReader, Errors) {
  const TextFiles files;
  EXPECT_THAT(message_of([&] { read_examples(files.write("a.tsv", "text\tlabel\n"), {}); }),
              HasSubstr("a.tsv: has no example: there is nothing after the header"));
  EXPECT_THAT(message_of([&] {
                read_examples(files.write("b.jsonl", "{\"text\": 3, \"label\": 1}\n"), {});
              }),
              HasSubstr("b.jsonl:1: `text` is the number 3; a text must be a string"));
}

TEST(ExampleReader, TheChecksumSeesEveryMove) {
  const TextFiles files;
  const auto of = [&](const char* text) {
    return checksum(read_examples(files.write("a.tsv", std::string("text\tlabel\n") + text), {}));
  };
  EXPECT_EQ(of("ab\tc\n"), of("ab\tc\n"));
  EXPECT_NE(of("ab\tc\n"), of("a\tbc\n"));
  EXPECT_NE(of("ab\tc\n"), of("ab\tc\nab\tc\n"));
}

// The first record of a file does not decide what the others have.
TEST(ExampleReader, LaterKeysAreNeverLost) {
  const TextFiles files;
  const std::string path =
      files.write("t.jsonl",
                  "{\"sentence1\": \"a\", \"label\": 1}\n"
                  "{\"sentence1\": \"b\", \"sentence2\": \"c\", \"label\": 0}\n");
  EXPECT_THAT(message_of([&] { read_examples(path, {}); }),
              HasSubstr("t.jsonl:2: has the key `sentence2`, which the first record"));
  ExampleReader reader(path, {}, false);
  Example example;
  ASSERT_TRUE(reader.next(example));
  EXPECT_THAT(message_of([&] { reader.next(example); }), HasSubstr("`sentence2`"));
  // A column that the user names has no second text.
  EXPECT_EQ(read_examples(path, {.columns = {.text = "sentence1"}}).all.size(), 2u);
}

// As in SimCSE, where a text is its own match.
TEST(ExampleReader, AColumnMayHaveTwoRoles) {
  const TextFiles files;
  for (const auto& [name, content] :
       {std::pair("a.tsv", "text\tid\nab\t1\ncd\t2\n"), std::pair("a.csv", "text,id\nab,1\ncd,2\n"),
        std::pair("a.jsonl",
                  "{\"text\": \"ab\", \"id\": \"1\"}\n"
                  "{\"text\": \"cd\", \"id\": \"2\"}\n")}) {
    const Examples examples =
        read_examples(files.write(name, content),
                      {.columns = {.text = "text", .text_pair = "text", .label = "text"}});
    ASSERT_EQ(examples.all.size(), 2u);
    EXPECT_EQ(examples.all[1].text, "cd") << name;
    EXPECT_EQ(examples.all[1].text_pair, "cd") << name;
    EXPECT_EQ(examples.all[1].label.text, "cd") << name;
  }
}

TEST(ExampleReader, OneOfTwoUsualNamesMustBeNamed) {
  const TextFiles files;
  const auto message = [&](const char* name, const char* text, const Columns& columns = {}) {
    return message_of([&] {
      ExampleReader(files.write(name, text), {.columns = columns, .column_fix = "give it"}, true);
    });
  };
  EXPECT_THAT(message("a.tsv", "text\tlabels\tlabel\na\t1\t2\n"),
              HasSubstr("a.tsv: which column contains the label? Both label and labels can; give "
                        "it"));
  EXPECT_THAT(message("a.jsonl", "{\"sentence\": \"a\", \"text\": \"b\", \"label\": 1}\n"),
              HasSubstr("which column contains the text? Both text and sentence can"));
  EXPECT_EQ(message("a.tsv", "text\tlabels\tlabel\na\t1\t2\n", {.label = "labels"}), "(no error)");
  EXPECT_EQ(message("a.jsonl", "{\"text\": \"a\", \"label\": null, \"labels\": 1}\n"),
            "(no error)");
  EXPECT_THAT(message_of([&] {
                read_examples(files.write("b.jsonl",
                                          "{\"text\": \"a\", \"label\": 1}\n"
                                          "{\"text\": \"a\", \"label\": 1, \"labels\": 2}\n"),
                              {});
              }),
              HasSubstr("b.jsonl:2: has the key `labels`, which the first record"));
}

TEST(ExampleReader, ColumnsThatAreNotReadAreNamed) {
  const TextFiles files;
  const auto unread = [&](const char* name, const char* text, const Columns& columns = {}) {
    return read_examples(files.write(name, text), {.columns = columns, .column_fix = "give --text"})
        .unread;
  };
  EXPECT_EQ(unread("a.tsv", "text\tlabel\na\t1\n"), "");
  EXPECT_THAT(unread("a.tsv", "id\ttext\tlabel\n7\ta\t1\n"),
              HasSubstr("a.tsv: a column is not read: id; to read others, give --text"));
  EXPECT_THAT(unread("a.jsonl", "{\"text\": \"a\", \"x\": 1, \"label\": 1, \"y\": 2}\n"),
              HasSubstr("a.jsonl: some columns are not read: x, y"));
  // Someone who names a column has looked at the others.
  EXPECT_EQ(unread("a.tsv", "id\ttext\tlabel\n7\ta\t1\n", {.text = "text"}), "");
}

TEST(ExampleReader, RecordsWithoutATextAreLeftOutAndCounted) {
  const TextFiles files;
  const std::string path =
      files.write("t.jsonl",
                  "{\"text\": \"a\", \"label\": 1}\n{\"text\": null, \"label\": 0}\n"
                  "{\"text\": \"c\", \"label\": NaN}\n{\"text\": 5, \"label\": 1}\n");
  EXPECT_THAT(message_of([&] { read_examples(path, {}); }), HasSubstr("t.jsonl:2: `text` is null"));
  EXPECT_THAT(message_of([&] { read_examples(path, {.left_out = corpus::LeftOut::kMissing}); }),
              HasSubstr("t.jsonl:4: `text` is the number 5"));
  const Examples examples = read_examples(path, {.left_out = corpus::LeftOut::kBad});
  EXPECT_EQ(examples.all.size(), 1u);
  EXPECT_THAT(examples.left_out, HasSubstr("3 records were left out: "));
}

TEST(ExampleReader, ATxtFileWithoutAHeaderSaysHowItIsRead) {
  const TextFiles files;
  EXPECT_THAT(
      message_of([&] { ExampleReader(files.write("t.txt", "I like it.\nNot me.\n"), {}, false); }),
      HasSubstr("for a text per line give the number of its column, 1"));
}

}  // namespace
}  // namespace onebit::finetune
