// No input crashes the tokenizer, and its fast path gives the result of the simple implementation.
#include <gtest/gtest.h>

#include <string>

#include "onebit/data/text/basic_tokenizer.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/data/text/utf8.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/philox.h"
#include "tests/text/small_vocabulary.h"

namespace onebit::text {
namespace {

// WordPiece by trying every token, longest first.
void naive_pieces(const std::string& word, const Vocabulary& vocabulary,
                  std::vector<int32_t>& ids) {
  size_t characters = 0;
  for (std::string_view rest = word; !rest.empty(); ++characters) {
    rest.remove_prefix(decode_utf8(rest).size_bytes);
  }
  std::vector<int32_t> found;
  for (size_t begin = 0; begin < word.size() && characters <= 100;) {
    size_t end = word.size();
    std::optional<int32_t> id;
    for (; end > begin && !id; --end) {
      id = vocabulary.find((begin > 0 ? "##" : "") + word.substr(begin, end - begin));
    }
    if (!id) break;
    found.push_back(*id);
    begin = end + 1;
    if (begin == word.size()) {
      ids.insert(ids.end(), found.begin(), found.end());
      return;
    }
  }
  ids.push_back(vocabulary.unknown_id());
}

std::vector<int32_t> naive_encode(std::string_view text, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  const BasicTokenizer basic(tokenizer.casing());
  const auto encode_plain = [&](std::string_view plain) {
    std::vector<BasicWord> words;
    basic.split(plain, words);
    for (const BasicWord& word : words) naive_pieces(word.text, tokenizer.vocabulary(), ids);
  };
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view special = special_token_at(text.substr(i));
    if (special.empty()) continue;
    encode_plain(text.substr(begin, i - begin));
    ids.push_back(*tokenizer.vocabulary().find(special));
    begin = i + special.size();
    i = begin - 1;
  }
  encode_plain(text.substr(begin));
  return ids;
}

Tokenizer letter_tokenizer(Casing casing) {
  std::vector<std::string> tokens = {",", "[", "]", "\u4e00", "##ab", "abc", "the", "##\u00e9"};
  for (char c = 'a'; c <= 'w'; ++c) {
    tokens.emplace_back(1, c);
    tokens.push_back("##" + std::string(1, c));
  }
  return Tokenizer(small_vocabulary(tokens), casing);
}

void expect_consistent(std::string_view text, Tokenizer& tokenizer) {
  std::vector<int32_t> ids, piece_ids, explained_ids;
  std::vector<Piece> pieces;
  std::vector<ExplainedWord> words;
  tokenizer.encode(text, ids);
  tokenizer.encode_with_offsets(text, pieces);
  tokenizer.explain(text, words);
  uint32_t word_end = 0;
  for (const Piece& piece : pieces) {
    piece_ids.push_back(piece.id);
    EXPECT_LE(piece.begin, piece.end);
    EXPECT_LE(piece.end, text.size());
  }
  for (const ExplainedWord& word : words) {
    EXPECT_LE(word_end, word.begin);
    EXPECT_LT(word.begin, word.end);
    word_end = word.end;
    for (const Piece& piece : word.pieces) explained_ids.push_back(piece.id);
  }
  EXPECT_LE(word_end, text.size());
  EXPECT_EQ(ids, piece_ids) << text;
  EXPECT_EQ(ids, explained_ids) << text;
  EXPECT_EQ(ids, naive_encode(text, tokenizer)) << text;
}

class Robustness : public testing::TestWithParam<Casing> {};

TEST_P(Robustness, AnyBytes) {
  Tokenizer tokenizer = letter_tokenizer(GetParam());
  RandomSequence random(1, 1, 0);
  for (int i = 0; i < 3000; ++i) {
    std::string text(random.below(60), '\0');
    for (char& c : text) c = static_cast<char>(random.below(256));
    expect_consistent(text, tokenizer);
  }
}

TEST_P(Robustness, TextWithAccidents) {
  Tokenizer tokenizer = letter_tokenizer(GetParam());
  const std::vector<std::string> parts = {"a",
                                          "B",
                                          "c",
                                          "the",
                                          "abc",
                                          " ",
                                          "  ",
                                          "\n",
                                          ",",
                                          "[",
                                          "[MASK]",
                                          "[mask]",
                                          "\u00e9",
                                          "e\u0301",
                                          "\u4e00",
                                          "\xC3",
                                          "\xF0\x9F",
                                          "\xFF",
                                          std::string(1, '\0'),
                                          "\x7F",
                                          "\u00ad",
                                          "\u0345",
                                          "\U0001d165",
                                          "\u2028",
                                          "abcdefgh",
                                          "abcdefghijklmnop",
                                          "abcdefghijklmnopq",
                                          std::string(99, 'a'),
                                          "x"};
  RandomSequence random(1, 2, 0);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (uint32_t n = random.below(20); n > 0; --n) {
      text += parts[random.below(static_cast<uint32_t>(parts.size()))];
    }
    expect_consistent(text, tokenizer);
  }
}

// The text is read in words of eight bytes: every length and place of a word at the end of it.
TEST_P(Robustness, EveryEnd) {
  Tokenizer tokenizer = letter_tokenizer(GetParam());
  for (size_t before = 0; before < 20; ++before) {
    for (size_t size = 0; size < 40; ++size) {
      const std::string text = std::string(before, ' ') + std::string(size, 'A');
      // A copy of the exact size, so that a sanitizer detects reads past the end.
      const std::vector<char> exact(text.begin(), text.end());
      expect_consistent({exact.data(), exact.size()}, tokenizer);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Casings, Robustness, testing::Values(Casing::kUncased, Casing::kCased),
                         [](const auto& chosen) {
                           return chosen.param == Casing::kUncased ? "uncased" : "cased";
                         });

// Bytes that are not UTF-8 are ignored, like U+FFFD.
TEST(InvalidUtf8, VanishesWithoutSplitting) {
  Tokenizer tokenizer = letter_tokenizer(Casing::kUncased);
  std::vector<int32_t> ids, expected;
  tokenizer.encode(
      "th\xFF"
      "e ab\xE2\x82"
      "c \xC0",
      ids);
  tokenizer.encode("the abc", expected);
  EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace onebit::text
