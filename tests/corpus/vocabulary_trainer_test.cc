#include "onebit/data/corpus/vocabulary_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/philox.h"
#include "tests/base/message_of.h"

namespace onebit::corpus {
namespace {

using text::Casing;
using text::Tokenizer;
using text::Vocabulary;

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> train(std::string_view text, int32_t size,
                               Casing casing = Casing::kUncased) {
  VocabularyTrainer trainer(casing);
  trainer.add_text(text);
  return trainer.train(size, 1);
}

TEST(VocabularyTrainer, JoinsTheMostFrequentPair) {
  // b##c occurs five times, a##b four, then the rest of abc.
  EXPECT_THAT(train("abc abc bc bc bc ab ab", 14),
              ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##b", "##c",
                          "ab", "bc", "abc"));
}

// Text without spaces is not empty, and another kind of tokenizer can learn it.
TEST(VocabularyTrainer, TextOfTooLongWordsIsNamed) {
  EXPECT_THAT(message_of([] { train(std::string(101, 'a'), 40); }),
              AllOf(HasSubstr("longer than 100 characters"), HasSubstr("--vocab-type unigram")));
  EXPECT_THAT(message_of([] { train(" ", 40); }), HasSubstr("the text is empty"));
}

TEST(VocabularyTrainer, NormalisesLikeTheTokenizer) {
  EXPECT_EQ(train("Caf\u00e9 CAFE, cafe\u0301 [MASK]", 40), train("cafe cafe, cafe", 40));
  EXPECT_NE(train("Caf\u00e9 CAFE", 40, Casing::kCased), train("cafe cafe", 40, Casing::kCased));
}

std::vector<std::string> random_lines(uint64_t stream) {
  std::vector<std::string> lines;
  RandomSequence random(3, stream, 0);
  for (int i = 0; i < 300; ++i) {
    std::string line;
    for (int w = 0; w < 12; ++w) {
      for (uint32_t n = 1 + random.below(7); n > 0; --n) {
        line.push_back(static_cast<char>('a' + random.below(6) * random.below(3)));
      }
      line.push_back(' ');
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(VocabularyTrainer, DependsOnCountsAlone) {
  const std::vector<std::string> lines = random_lines(0);
  VocabularyTrainer forward(Casing::kUncased), backward(Casing::kUncased), part(Casing::kUncased),
      joined(Casing::kUncased);
  for (size_t i = 0; i < lines.size(); ++i) {
    forward.add_text(lines[i]);
    backward.add_text(lines[lines.size() - 1 - i]);
    (i % 3 == 0 ? part : joined).add_text(lines[i]);
  }
  joined.merge(part);
  const std::vector<std::string> expected = forward.train(400, 1);
  EXPECT_EQ(expected.size(), 400u);
  EXPECT_EQ(backward.train(400, 1), expected);
  EXPECT_EQ(joined.train(400, 1), expected);
  EXPECT_EQ(forward.train(400, 4), expected);
}

TEST(VocabularyTrainer, MakesAVocabularyThatKnowsItsText) {
  std::string text;
  for (const std::string& line : random_lines(1)) text += line + "\n";
  const auto vocabulary =
      std::make_shared<const Vocabulary>(Vocabulary::from_tokens(train(text, 200), "trained"));
  Tokenizer tokenizer(vocabulary, Casing::kUncased);
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), vocabulary->unknown_id()), 0);
}

TEST(VocabularyTrainer, KeepsTheMostFrequentCharacters) {
  std::string text;
  for (char32_t c = 0x4E00; c < 0x4E00 + 1200; ++c) {
    const int times = c < 0x4E00 + 1000 ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      text += static_cast<char>(0xE0 | (c >> 12));
      text += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  const std::vector<std::string> tokens = train(text, 5000);
  EXPECT_EQ(tokens.size(), 1005u);
  EXPECT_EQ(tokens[5], "\u4e00");
}

TEST(VocabularyTrainer, RefusesWhatCannotBe) {
  VocabularyTrainer trainer(Casing::kUncased);
  EXPECT_THROW(trainer.train(100, 1), Error);
  trainer.add_text(" \n\u0301");
  EXPECT_THROW(trainer.train(100, 1), Error);
  trainer.add_text("ab");
  try {
    trainer.train(7, 1);
    FAIL() << "a vocabulary without room was trained";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("use at least 8"));
  }
  EXPECT_EQ(trainer.train(8, 1).size(), 8u);
  EXPECT_THROW(trainer.merge(VocabularyTrainer(Casing::kCased)), Error);
}

}  // namespace
}  // namespace onebit::corpus
