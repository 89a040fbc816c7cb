// Passages hold all words of a document in order, and none has too many tokens.
#include "onebit/program/search/passage_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>

#include "onebit/data/text/vocabulary.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::search {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Every letter and every digit is a token.
text::Tokenizer letters() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."};
  for (const char first : {'a', '0'}) {
    for (int i = 0; i < (first == 'a' ? 26 : 10); ++i) {
      tokens.emplace_back(1, static_cast<char>(first + i));
      tokens.push_back("##" + tokens.back());
    }
  }
  return {std::make_shared<const text::Vocabulary>(
              text::Vocabulary::from_tokens(std::move(tokens), "letters")),
          text::Casing::kUncased};
}

class PassageReaderTest : public testing::Test {
 protected:
  PassageReader open(const std::string& name, const std::string& text,
                     const PassageOptions& options,
                     corpus::TextFormat format = corpus::TextFormat::kAuto) {
    write_file_atomically(folder_ / name, text);
    return {corpus::TextSource(corpus::find_input_files({folder_ / name}).files, format), letters(),
            options};
  }
  // "line: text" of every passage.
  static std::vector<std::string> all(PassageReader reader) {
    std::vector<std::string> lines;
    for (Passage passage; reader.next(passage);) {
      lines.push_back(fmt::format("{}: {}", passage.line, passage.text));
    }
    return lines;
  }

  TemporaryFolder folder_;
};

TEST_F(PassageReaderTest, JoinsShortParagraphsAndKeepsTheirPlaces) {
  EXPECT_THAT(all(open("a.txt", "\none two\n\n\nab\nabc\n\nabcdefgh\n", {.tokens = 11})),
              ElementsAre("2: one two\nab\nabc", "8: abcdefgh"));
}

TEST_F(PassageReaderTest, CutsLongParagraphsBetweenSentences) {
  EXPECT_THAT(all(open("a.txt", "Aa bb cc. Dd ee ff. Gg\nhh. Ii jj.\n\nkk\n", {.tokens = 12},
                       corpus::TextFormat::kProse)),
              ElementsAre("1: Aa bb cc.", "1: Dd ee ff. Gg\nhh.", "2: Ii jj.", "4: kk"));
}

TEST_F(PassageReaderTest, CutsALongSentenceBetweenWords) {
  EXPECT_THAT(all(open("a.txt", "abc abc abc abc abc abc\n", {.tokens = 8})),
              ElementsAre("1: abc abc", "1: abc abc", "1: abc abc"));
}

TEST_F(PassageReaderTest, EveryPartOfALongSentenceHasItsOwnLine) {
  EXPECT_THAT(all(open("a.txt", "x\n\nabc\nabc abc\nabc abc\nabc\n", {.tokens = 6},
                       corpus::TextFormat::kProse)),
              ElementsAre("1: x", "3: abc\nabc", "4: abc\nabc", "5: abc\nabc"));
}

TEST_F(PassageReaderTest, LinesOfWindowsEndAsThoseOfUnix) {
  for (const int64_t tokens : {6, 100}) {
    const auto passages = [&](const std::string& text) {
      return all(open("a.txt", text, {.tokens = tokens}, corpus::TextFormat::kProse));
    };
    EXPECT_EQ(passages("Ab\r\ncd.\r\n\r\nef\r\n\fabc\r\nabc\r\nabc\r\n"),
              passages("Ab\ncd.\n\nef\n\fabc\nabc\nabc\n"));
  }
  EXPECT_THAT(all(open("a.txt", "ab\r\ncd\r\n", {}, corpus::TextFormat::kProse)),
              ElementsAre("1: ab\ncd"));
}

TEST_F(PassageReaderTest, CutsAWordThatIsLongerThanAPassage) {
  EXPECT_THAT(all(open("a.txt", std::string(20, 'a') + "\n", {.tokens = 8})),
              ElementsAre("1: aaaaaaaa", "1: aaaaaaaa", "1: aaaa"));
}

TEST_F(PassageReaderTest, RecordsOfJsonLinesAreDocuments) {
  EXPECT_THAT(
      all(open("a.jsonl", "{\"text\": \"ab\\n\\ncd\"}\n{\"text\": \"e\"}\n", {.tokens = 8})),
      ElementsAre("1: ab\ncd", "2: e"));
  PassageReader reader = open("b.jsonl", "{\"text\": \" \"}\n{\"text\": \"e\"}\n", {});
  Passage passage;
  while (reader.next(passage)) EXPECT_EQ(passage.line, 2u);
  EXPECT_EQ(reader.blank_records(), 1);
}

TEST_F(PassageReaderTest, BadRecordsAreLeftOutOnRequest) {
  const std::string text = "{\"text\": \"ab\"}\n{\"text\": 5}\n{\"text\": \"cd\"}\n";
  PassageReader strict = open("a.jsonl", text, {});
  Passage passage;
  EXPECT_THROW(while (strict.next(passage)){}, Error);
  PassageReader lenient = open("a.jsonl", text, {.left_out = corpus::LeftOut::kBad});
  int64_t passages = 0;
  while (lenient.next(passage)) ++passages;
  EXPECT_EQ(passages, 2);
  EXPECT_EQ(lenient.left_out().count(), 1);
}

// The work on what comes before it would be lost.
TEST_F(PassageReaderTest, AFaultIsFoundByALookAtTheFiles) {
  using corpus::LeftOut;
  const auto problem_of = [&](const char* name, const std::string& text, LeftOut left_out) {
    write_file_atomically(folder_ / "in" / name, text);
    const auto files = corpus::find_input_files({folder_ / "in"}).files;
    const std::string problem =
        message_of([&] { check_inputs(files, corpus::TextFormat::kAuto, left_out); });
    std::filesystem::remove(folder_ / "in" / name);
    return problem;
  };
  std::filesystem::create_directory(folder_ / "in");
  write_file_atomically(folder_ / "in/a.txt", "ab\n");
  EXPECT_EQ(problem_of("b.txt", "cd\n", LeftOut::kMissing), "(no error)");
  EXPECT_THAT(problem_of("z.txt", "caf\xe9\n", LeftOut::kBad),
              AllOf(HasSubstr("z.txt: byte 3"), HasSubstr("not UTF-8")));
  const std::string broken = "{\"text\": \"ab\"}\n{\"text\": 5}\n";
  EXPECT_THAT(problem_of("z.jsonl", broken, LeftOut::kMissing),
              AllOf(HasSubstr("z.jsonl:2"), HasSubstr("--skip-bad-records")));
  EXPECT_EQ(problem_of("z.jsonl", broken, LeftOut::kBad), "(no error)");
  // What can be read once only is left to the reader.
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  check_inputs(corpus::find_input_files({folder_ / "pipe", "-"}).files, corpus::TextFormat::kAuto,
               LeftOut::kMissing);
}

TEST_F(PassageReaderTest, DocumentsAreNotJoined) {
  write_file_atomically(folder_ / "a.txt", "ab\n");
  write_file_atomically(folder_ / "b.txt", "cd\n\fef\n");
  EXPECT_THAT(all({corpus::TextSource(corpus::find_input_files({folder_.path()}).files,
                                      corpus::TextFormat::kProse),
                   letters(),
                   {}}),
              ElementsAre("1: ab", "1: cd", "2: ef"));
}

// Every word is in exactly one passage, whatever the sizes.
TEST_F(PassageReaderTest, LosesNoWord) {
  std::string text;
  for (int word = 0; word < 30'000; ++word) {
    text += fmt::format("{}{}", word * 7919 % 1000,
                        word % 97 == 0   ? ".\n\n"
                        : word % 11 == 0 ? ". "
                                         : " ");
  }
  const auto words_of = [](const std::string& from) {
    std::vector<std::string> words(1);
    for (const char c : from) {
      if (c >= '0' && c <= '9') {
        words.back() += c;
      } else if (!words.back().empty()) {
        words.emplace_back();
      }
    }
    return words;
  };
  text::Tokenizer tokenizer = letters();
  for (const int64_t tokens : {8, 33, 500}) {
    PassageReader reader = open("a.txt", text, {.tokens = tokens}, corpus::TextFormat::kProse);
    std::string joined;
    for (Passage passage; reader.next(passage);) {
      std::vector<int32_t> ids;
      tokenizer.encode(passage.text, ids);
      EXPECT_LE(static_cast<int64_t>(ids.size()), tokens) << passage.text;
      joined += passage.text + "\n";
    }
    EXPECT_EQ(words_of(joined), words_of(text)) << tokens;
  }
}

}  // namespace
}  // namespace onebit::search
