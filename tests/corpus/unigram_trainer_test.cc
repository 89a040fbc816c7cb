#include "onebit/data/corpus/unigram_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/philox.h"
#include "tests/base/message_of.h"

namespace onebit::corpus {
namespace {

using testing::HasSubstr;

void ignore(size_t /*pieces*/) {}

std::vector<UnigramPiece> train(const std::vector<WeightedWord>& words, size_t size) {
  return train_unigram(words, size, 1, ignore);
}

bool has(const std::vector<UnigramPiece>& pieces, std::string_view text) {
  return std::ranges::count(pieces, text, &UnigramPiece::text) == 1;
}

// Words of syllables: every word is a stem with an ending.
struct Language {
  Language() {
    const char* stems[] = {"wal", "talk", "jump", "sing", "read", "\u00e9lan", "\u732b"};
    const char* ends[] = {"ing", "ed", "er", "s", ""};
    RandomSequence random(9, 1, 0);
    for (const char* stem : stems) {
      for (const char* end : ends) texts.push_back(std::string(stem) + end);
    }
    for (const std::string& text : texts) words.push_back({text, 1 + random.below(400)});
  }

  std::vector<std::string> texts;
  std::vector<WeightedWord> words;
};

// 240 words of 40 stems. No word occurs twice, so none is a piece.
TEST(UnigramTrainer, FindsStemsAndEndings) {
  RandomSequence random(4, 1, 0);
  std::vector<std::string> texts;
  for (int stem = 0; stem < 40; ++stem) {
    std::string text;
    for (int i = 0; i < 5; ++i) text += "bcdfghjklmnpqrstvwxz"[random.below(20)];
    for (const char* end : {"ing", "ed", "able", "ion", "ous", "est"}) texts.push_back(text + end);
  }
  std::vector<WeightedWord> words;
  for (const std::string& text : texts) words.push_back({text, 1});
  const auto pieces = train(words, 76);
  int stems = 0;
  for (size_t i = 0; i < texts.size(); i += 6) stems += has(pieces, texts[i].substr(0, 5)) ? 1 : 0;
  EXPECT_GE(stems, 35);
  for (const char* end : {"ing", "ed", "able", "ion", "ous", "est"}) {
    EXPECT_TRUE(has(pieces, end)) << end;
  }
  EXPECT_TRUE(std::ranges::is_sorted(pieces, std::ranges::greater(), &UnigramPiece::score));
}

TEST(UnigramTrainer, KeepsEveryCharacterAndAtMostSoManyPieces) {
  const Language language;
  for (const size_t size : {21u, 22u, 30u, 60u, 1000u}) {
    const auto pieces = train(language.words, size);
    EXPECT_LE(pieces.size(), size);
    double sum = 0;
    for (const char* character : {"w", "k", "g", "\u00e9", "\u732b", "r"}) {
      EXPECT_TRUE(has(pieces, character)) << character << " of " << size;
    }
    for (const UnigramPiece& piece : pieces) sum += std::exp(piece.score);
    EXPECT_GT(sum, 0.2);
    EXPECT_LT(sum, 1.01);
  }
  EXPECT_GT(train(language.words, 60).size(), 40u);
}

TEST(UnigramTrainer, DependsOnCountsAlone) {
  const Language language;
  const auto expected = train_unigram(language.words, 40, 1, ignore);
  auto backward = language.words;
  std::ranges::reverse(backward);
  EXPECT_EQ(train_unigram(backward, 40, 1, ignore), expected);
  EXPECT_EQ(train_unigram(language.words, 40, 4, ignore), expected);
  auto halves = language.words;
  for (WeightedWord& word : halves) word.count -= word.count / 2;
  for (const WeightedWord& word : language.words) halves.push_back({word.text, word.count / 2});
  EXPECT_EQ(train_unigram(halves, 40, 2, ignore), expected);
}

// Of 1,500 characters, 500 occur once in a million.
TEST(UnigramTrainer, LeavesRareCharactersOut) {
  std::vector<std::string> texts;
  std::vector<WeightedWord> words;
  for (char32_t c = 0x4E00; c < 0x4E00 + 1500; ++c) {
    texts.push_back({static_cast<char>(0xE0 | (c >> 12)),
                     static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
                     static_cast<char>(0x80 | (c & 0x3F))});
  }
  for (size_t i = 0; i < texts.size(); ++i) words.push_back({texts[i], i < 1000 ? 1'000'000u : 1u});
  EXPECT_EQ(train(words, 5000).size(), 1000u);
}

TEST(UnigramTrainer, RefusesWhatCannotBe) {
  EXPECT_THAT(message_of([] { train({}, 100); }), HasSubstr("the text is empty"));
  EXPECT_THAT(message_of([] { train({{"abc", 5}}, 2); }), HasSubstr("3 characters"));
}

}  // namespace
}  // namespace onebit::corpus
