#include "onebit/data/sentence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/base/message_of.h"

namespace onebit::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kEnd = "----";  // stands for the end of a document

TextBlock block_of(const std::string& text, TextFormat format) {
  return {.source = "f",
          .offset_bytes = 100,
          .first_line = 7,
          .format = format,
          .ends_file = true,
          .text = text};
}

std::vector<std::string> read(const std::string& text, TextFormat format) {
  TextBlock block = block_of(text, format);
  std::vector<std::string> found;
  SentenceReader("en").read(
      block, {.sentence = [&](std::string_view sentence) { found.emplace_back(sentence); },
              .document_end =
                  [&] {
                    if (!found.empty() && found.back() != kEnd) found.emplace_back(kEnd);
                  }});
  return found;
}

TEST(SentenceReader, TakesLinesAsSentences) {
  EXPECT_THAT(read("  One. Two.\t\r\nthree\n\n \nFour", TextFormat::kLines),
              ElementsAre("One. Two.", "three", kEnd, "Four", kEnd));
}

TEST(SentenceReader, SplitsProseIntoSentences) {
  EXPECT_THAT(read("He came. She\nleft.\n\nThey met! Here", TextFormat::kProse),
              ElementsAre("He came.", "She\nleft.", "They met!", "Here", kEnd));
}

TEST(SentenceReader, FormFeedsEndDocumentsOfProse) {
  EXPECT_THAT(read("He came.\n\f\nShe left.\fRain\nfell.\n", TextFormat::kProse),
              ElementsAre("He came.", kEnd, "She left.", kEnd, "Rain\nfell.", kEnd));
}

TEST(SentenceReader, LongLinesAreParagraphs) {
  const std::string line = std::string(250, 'x');
  EXPECT_THAT(read(line + "\n" + line + "\nshort\nlines\n", TextFormat::kProse),
              ElementsAre(line, line, "short\nlines", kEnd));
}

TEST(SentenceReader, TakesTheTextOfJsonLines) {
  EXPECT_THAT(read("{\"id\": 1, \"text\": \"He came. She \\u006ceft.\"}\n\n"
                   "{\"meta\": {\"text\": \"no\"}, \"text\": \"Rain\\n\\nfell\", \"x\": [1, 2.5]}\n"
                   "{\"text\": \"\"}\n",
                   TextFormat::kJsonl),
              ElementsAre("He came.", "She left.", kEnd, "Rain", "fell", kEnd));
}

TEST(SentenceReader, BadJsonLinesAreErrorsWithPathAndLine) {
  const auto message = [](const std::string& line) {
    return message_of([&] {
      read("{\"text\": \"fine\"}\n" + line + "\n{\"text\": \"fine\"}\n", TextFormat::kJsonl);
    });
  };
  EXPECT_THAT(message("{\"text\": \"cut"), AllOf(HasSubstr("f:8"), HasSubstr("bad JSON")));
  EXPECT_THAT(message("{\"text\": \"a\"} x"), AllOf(HasSubstr("f:8"), HasSubstr("bad JSON")));
  EXPECT_THAT(message("{\"body\": \"a\"}"), AllOf(HasSubstr("f:8"), HasSubstr("no \"text\"")));
  EXPECT_THAT(message("{\"text\": 5}"), AllOf(HasSubstr("f:8"), HasSubstr("not a string")));
  EXPECT_THAT(message("{\"text\": [\"a\"]}"), AllOf(HasSubstr("f:8"), HasSubstr("not a string")));
  EXPECT_THAT(message("{\"text\": null}"), HasSubstr("not a string"));
  EXPECT_THAT(message("{\"text\": \"a\", \"text\": \"b\"}"), HasSubstr("given twice"));
  EXPECT_THAT(message("[\"a\"]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("\"a\""), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("5"), HasSubstr("not a JSON object"));
}

TEST(CheckUtf8, NamesPathAndByte) {
  check_utf8(block_of("gr\xC3\xBC\xC3\x9F", TextFormat::kLines));
  EXPECT_THAT(message_of([] { check_utf8(block_of("gr\xFC\xDF", TextFormat::kLines)); }),
              AllOf(HasSubstr("f: byte 102 (0xfc) is not UTF-8"), HasSubstr("iconv")));
}

}  // namespace
}  // namespace onebit::data
