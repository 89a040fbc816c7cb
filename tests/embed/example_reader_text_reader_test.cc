#include "onebit/apps/embed/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::embed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EmbedTexts : public ::testing::Test {
 protected:
  std::vector<std::string> read(const std::string& name, const std::string& content,
                                const TextLayout& layout = {}) {
    write_file_atomically(folder_ / name, content);
    TextReader reader(folder_ / name, layout);
    std::vector<std::string> texts;
    for (std::string text; reader.next(text);) texts.push_back(text);
    return texts;
  }

  TemporaryFolder folder_;
};

TEST_F(EmbedTexts, LinesAreTextsWhateverIsInThem) {
  EXPECT_THAT(read("a.txt", "one\ttwo\r\n\n\"three\nlast"),
              ElementsAre("one\ttwo", "", "\"three", "last"));
  EXPECT_THAT(read("a.txt", ""), IsEmpty());
  EXPECT_THAT(read("a.log", "x\n", {.format = TextFormat::kLines}), ElementsAre("x"));
}

TEST_F(EmbedTexts, AColumnOfRecords) {
  EXPECT_THAT(read("a.tsv", "id\ttext\n1\tone\n2\ttwo\n"), ElementsAre("one", "two"));
  EXPECT_THAT(read("a.csv", "\"a, b\",1\n", {.column = "1"}), ElementsAre("a, b"));
  EXPECT_THAT(read("a.jsonl", "{\"sentence\": \"s\", \"n\": 1}\n{\"sentence\": \"\"}\n"),
              ElementsAre("s", ""));
  EXPECT_THAT(read("a.txt", "passage\nx\n", {.format = TextFormat::kTsv}), ElementsAre("x"));
}

TEST_F(EmbedTexts, ErrorsNameTheLine) {
  EXPECT_THAT(message_of([&] { read("a.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n"); }),
              HasSubstr("a.jsonl:2: `text` is the number 3; a text must be a string"));
  EXPECT_THAT(message_of([&] { read("a.pdf", "x"); }), HasSubstr("unknown file ending"));
  EXPECT_THAT(message_of([&] { read("a.tsv", "a\tb\n1\t2\n"); }), HasSubstr("give --text"));
}

}  // namespace
}  // namespace onebit::embed
