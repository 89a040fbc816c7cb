#include "onebit/data/text/tokenizer.h"

#include <gtest/gtest.h>

#include <limits>

#include "onebit/ground/base/philox.h"
#include "tests/text/small_vocabulary.h"

namespace onebit::text {
namespace {

using Ids = std::vector<int32_t>;

Ids encode(Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

// Google's own unit vectors.
TEST(Tokenizer, SplitsWordsGreedily) {
  const auto vocabulary = std::make_shared<const Vocabulary>(
      Vocabulary::from_tokens({"[UNK]", "[CLS]", "[SEP]", "[MASK]", "want", "##want", "##ed", "wa",
                               "un", "runn", "##ing", ",", "[PAD]"},
                              "test"));
  Tokenizer tokenizer(vocabulary, Casing::kUncased);
  EXPECT_EQ(encode(tokenizer, "UNwant\u00e9d,running"), (Ids{8, 5, 6, 11, 9, 10}));
  EXPECT_EQ(encode(tokenizer, "unwantedX running"), (Ids{0, 9, 10}));
  EXPECT_EQ(encode(tokenizer, ""), Ids{});
}

TEST(Tokenizer, FindsSpecialTokensAnywhereInTheirSpelling) {
  Tokenizer tokenizer(small_vocabulary({"x", "[", "]", "mask", "."}), Casing::kUncased);
  EXPECT_EQ(encode(tokenizer, "[MASK] x[MASK] [MASK]."), (Ids{4, 5, 4, 4, 9}));
  EXPECT_EQ(encode(tokenizer, "[mask] [ MASK ] [[MASK]] [MASK"),
            (Ids{6, 8, 7, 6, 8, 7, 6, 4, 7, 6, 8}));
  EXPECT_EQ(encode(tokenizer, "[CLS]x[SEP][PAD][UNK]"), (Ids{2, 5, 3, 0, 1}));
}

TEST(Tokenizer, AppendsAndAgreesWithItself) {
  Tokenizer tokenizer(small_vocabulary({"ab", "##c", "##d", "abcdefgh", "##ijklmnop"}),
                      Casing::kUncased);
  const std::string text = "abcd ABCDEFGH abcdefghijklmnop ab\u0107 abcdcdcd abcdefghijklmnopcd";
  const Ids once = encode(tokenizer, text);
  EXPECT_EQ(once, (Ids{5, 6, 7, 8, 8, 9, 5, 6, 5, 6, 7, 6, 7, 6, 7, 8, 9, 6, 7}));
  Ids twice = once;
  tokenizer.encode(text, twice);  // from the cache now
  Ids expected = once;
  expected.insert(expected.end(), once.begin(), once.end());
  EXPECT_EQ(twice, expected);
}

TEST(Tokenizer, IdsAreThoseOfThePieces) {
  RandomSequence random(1, 2, 3);
  Tokenizer tokenizer(small_vocabulary({"a", "##a", "b", "##b", ",", "\u201c"}), Casing::kUncased);
  for (int words = 0; words < 3000; words += 1 + words / 4) {
    std::string text;
    for (int word = 0; word < words; ++word) {
      const bool accent = random.below(8) == 0;
      for (uint32_t left = random.below(accent ? 110 : 20); left > 0; --left) {
        text += random.below(2) == 0 ? "a" : "b";
        if (accent && left == 1) text += "\u00e1";
      }
      text += random.below(4) == 0 ? ", " : random.below(4) == 0 ? " \u201c" : " ";
    }
    std::vector<Piece> pieces;
    tokenizer.encode_with_offsets(text, pieces);
    Ids expected;
    for (const Piece& piece : pieces) expected.push_back(piece.id);
    Tokenizer fresh(tokenizer);
    EXPECT_EQ(encode(fresh, text), expected) << words << " words";
    EXPECT_EQ(encode(fresh, text), expected) << words << " words, all known";
  }
}

TEST(Tokenizer, LongWordsAreUnknown) {
  Tokenizer tokenizer(small_vocabulary({"a", "##a"}), Casing::kUncased);
  EXPECT_EQ(encode(tokenizer, std::string(100, 'a')).size(), 100u);
  EXPECT_EQ(encode(tokenizer, std::string(101, 'a')), Ids{1});
  // Characters are counted after normalising, and not bytes.
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "a\u0301\u00e1";
  EXPECT_EQ(encode(tokenizer, accents.substr(0, 50 * 5)).size(), 100u);
  EXPECT_EQ(encode(tokenizer, accents.substr(0, 51 * 5)), Ids{1});
}

TEST(Tokenizer, OffsetsAreBytesOfTheOriginal) {
  Tokenizer tokenizer(small_vocabulary({"un", "##want", "##ed", ",", "[", "ab", "##c"}),
                      Casing::kUncased);
  std::vector<Piece> pieces;
  tokenizer.encode_with_offsets("UNwant\u00e9d, [MASK] zz ABC", pieces);
  EXPECT_EQ(pieces, (std::vector<Piece>{{5, 0, 2},
                                        {6, 2, 6},
                                        {7, 6, 9},
                                        {8, 9, 10},
                                        {4, 11, 17},
                                        {1, 18, 20},
                                        {10, 21, 23},
                                        {11, 23, 24}}));
}

TEST(Tokenizer, HangulPiecesShareTheirSyllable) {
  Tokenizer tokenizer(small_vocabulary({"\u1112", "##\u1161", "##\u11ab"}), Casing::kUncased);
  std::vector<Piece> pieces;
  tokenizer.encode_with_offsets("\ud55c", pieces);
  EXPECT_EQ(pieces, (std::vector<Piece>{{5, 0, 3}, {6, 0, 3}, {7, 0, 3}}));
}

TEST(Tokenizer, CasedTakesWordsAsWritten) {
  Tokenizer tokenizer(small_vocabulary({"Ab", "ab", "##\u00e9"}), Casing::kCased);
  EXPECT_EQ(encode(tokenizer, "Ab ab Ab\u00e9 AB"), (Ids{5, 6, 5, 7, 1}));
}

TEST(Tokenizer, CopiesShareTheVocabulary) {
  Tokenizer first(small_vocabulary({"x"}), Casing::kCased);
  Tokenizer second(first);
  EXPECT_EQ(&first.vocabulary(), &second.vocabulary());
  EXPECT_EQ(second.casing(), Casing::kCased);
  EXPECT_EQ(encode(second, "x"), Ids{5});
  const Tokenizer third(std::move(second));
  EXPECT_EQ(&third.vocabulary(), &first.vocabulary());
}

// More different words than the cache holds, some too long for its table and some with more ids
// than an entry: every one must still come out as it did the first time.
TEST(Tokenizer, OutlivesAFullCache) {
  std::vector<std::string> tokens;
  for (char c = '0'; c <= '9'; ++c) {
    tokens.emplace_back(1, c);
    tokens.push_back(std::string("##") + c);
  }
  Tokenizer tokenizer(small_vocabulary(tokens), Casing::kUncased);
  Ids ids;
  for (int i = 0; i < 300'000; ++i) {
    const std::string word = std::to_string(i) + (i % 7 == 0 ? "000000000000000" : "");
    ids.clear();
    tokenizer.encode(word, ids);
    ASSERT_EQ(ids.size(), word.size());
    for (size_t k = 0; k < word.size(); ++k) {
      ASSERT_EQ(ids[k], 5 + 2 * (word[k] - '0') + (k > 0 ? 1 : 0)) << word;
    }
  }
}

TEST(Tokenizer, ExplainsEveryWord) {
  Tokenizer tokenizer(small_vocabulary({"the", "un", "##do"}), Casing::kUncased);
  std::vector<ExplainedWord> words;
  const std::string text = "The undo [SEP] qq \u00ad" + std::string(101, 'x');
  tokenizer.explain(text, words);
  ASSERT_EQ(words.size(), 5u);
  EXPECT_EQ(words[0].outcome, WordOutcome::kWhole);
  EXPECT_EQ(words[0].normalized, "the");
  EXPECT_EQ(words[1].outcome, WordOutcome::kPieces);
  EXPECT_EQ(words[1].pieces, (std::vector<Piece>{{6, 4, 6}, {7, 6, 8}}));
  EXPECT_EQ(words[2].outcome, WordOutcome::kSpecialToken);
  EXPECT_EQ(text.substr(words[2].begin, words[2].end - words[2].begin), "[SEP]");
  EXPECT_EQ(words[3].outcome, WordOutcome::kNoMatch);
  EXPECT_EQ(words[4].outcome, WordOutcome::kTooLong);
  words.clear();
  tokenizer.explain("\u0301", words);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].outcome, WordOutcome::kVanished);
}

}  // namespace
}  // namespace onebit::text
