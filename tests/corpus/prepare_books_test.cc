#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/text/tokenizer.h"
#include "tests/base/temporary_folder.h"

namespace onebit::corpus {
namespace {

using testing::HasSubstr;

// Sentences of a made book, each from a few words in another order.
std::vector<std::string> made_sentences(uint64_t seed, int count) {
  constexpr const char* kWords[] = {
      "the",   "captain", "remembered", "every",  "harbour", "lanterns",  "quietly",   "beyond",
      "their", "window",  "morning",    "letter", "carried", "seventeen", "strangers", "winter"};
  std::mt19937_64 random(seed);
  std::vector<std::string> sentences;
  for (int i = 0; i < count; ++i) {
    std::string sentence;
    const uint64_t words = 5 + random() % 9;
    for (uint64_t word = 0; word < words; ++word) {
      sentence += (word == 0   ? ""
                   : word == 4 ? ", "
                               : " ") +
                  std::string(kWords[random() % std::size(kWords)]);
    }
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
    sentences.push_back(sentence + (i % 7 == 0 ? "?" : "."));
  }
  return sentences;
}

// Paragraphs of five sentences, in lines of at most 70 columns.
std::string as_prose(const std::vector<std::string>& sentences) {
  std::string text;
  size_t column = 0;
  for (size_t i = 0; i < sentences.size(); ++i) {
    if (i > 0 && i % 5 == 0) {
      text += "\n\n";
      column = 0;
    }
    std::istringstream words(sentences[i]);
    for (std::string word; words >> word;) {
      const bool breaks = column + word.size() >= 70;
      if (column > 0) text += breaks ? '\n' : ' ';
      column = (breaks ? 0 : column) + word.size() + 1;
      text += word;
    }
  }
  return text + "\n";
}

TEST(PrepareBooks, TokenizeAsTheTokenizerDoes) {
  const TemporaryFolder folder;
  const std::vector<std::string> books[] = {made_sentences(1, 6000), made_sentences(2, 5000)};
  std::filesystem::create_directories(folder / "books");
  write_file_atomically(folder / "books/first.txt", as_prose(books[0]));
  write_file_atomically(folder / "books/second.txt", as_prose(books[1]));
  PrepareOptions made;
  made.inputs = {folder / "books"};
  made.output = folder / "store";
  made.threads = 3;
  made.vocabulary_size = 60;  // so that words are split
  const PrepareReport report = prepare(made);
  EXPECT_THAT(report.decisions, testing::Contains(HasSubstr("text format: prose")));
  ASSERT_EQ(report.manifest.documents, 2u);
  ASSERT_EQ(report.manifest.sentences, 11'000u);
  const TokenStore store(made.output);
  store.verify();
  text::Tokenizer tokenizer(store.vocabulary(), store.casing());
  uint64_t sentence = 0;
  for (const std::vector<std::string>& book : books) {
    for (const std::string& text : book) {
      std::vector<int32_t> expected;
      tokenizer.encode(text, expected);
      const uint64_t begin = store.sentence_begin(sentence++);
      std::vector<int32_t> ids(store.sentence_begin(sentence) - begin);
      store.copy_tokens(begin, ids.size(), ids.data());
      ASSERT_EQ(ids, expected) << text;
    }
  }
}

}  // namespace
}  // namespace onebit::corpus
