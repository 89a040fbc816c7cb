#include "onebit/data/corpus/sentence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace onebit::corpus {
namespace {

using testing::ElementsAre;

constexpr const char* kEnd = "----";  // marks the end of a document

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

TEST(SentenceReader, EmptyLinesEndDocumentsWhereTheFormatSaysSo) {
  EXPECT_THAT(read("He came. She\nleft.\n\nThey met! Here\n \n\n\fRain\n", TextFormat::kDocuments),
              ElementsAre("He came.", "She\nleft.", kEnd, "They met!", "Here", kEnd, "Rain", kEnd));
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

}  // namespace
}  // namespace onebit::corpus
