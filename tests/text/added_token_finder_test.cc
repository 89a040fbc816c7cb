#include "onebit/data/text/added_token_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/text/small_vocabulary.h"

namespace onebit::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Hugging Face's `tokenizers` computed the ids and offsets (tools/make_added_token_golden.py).
TEST(AddedTokenFinder, TextsAreSplitAsTokenizersDoes) {
  const Path path = Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/added_tokens.json";
  const Json golden = read_json(path);
  size_t texts = 0;
  for (const Json& one : golden.at("cases")) {
    VocabularyParts parts{.tokens = golden.at("vocabulary").get<std::vector<std::string>>()};
    for (const Json& object : one.at("added_tokens")) {
      JsonReader reader(object, path.string(), "added_tokens");
      const auto id = static_cast<int32_t>(reader.integer("id", -1));
      parts.added.push_back(read_added_token(reader));
      parts.added.back().id = id;
    }
    Tokenizer tokenizer(std::make_shared<const Vocabulary>(Vocabulary::from_parts(parts, "golden")),
                        one.at("lower_case").get<bool>() ? Casing::kUncased : Casing::kCased);
    for (const Json& given : one.at("texts")) {
      const auto text = given.at("text").get<std::string>();
      std::vector<Piece> pieces, wanted;
      for (size_t i = 0; i < given.at("ids").size(); ++i) {
        const Json& range = given.at("offsets")[i];
        wanted.push_back({given.at("ids")[i].get<int32_t>(), range[0].get<uint32_t>(),
                          range[1].get<uint32_t>()});
      }
      tokenizer.encode_with_offsets(text, pieces);
      EXPECT_EQ(pieces, wanted) << given.dump();
      std::vector<int32_t> ids;
      tokenizer.encode(text, ids);
      EXPECT_EQ(ids, given.at("ids").get<std::vector<int32_t>>()) << given.dump();
      std::vector<ExplainedWord> words;
      tokenizer.explain(text, words);
      std::vector<Piece> explained;
      for (const ExplainedWord& word : words) {
        explained.insert(explained.end(), word.pieces.begin(), word.pieces.end());
      }
      EXPECT_EQ(explained, wanted) << given.dump();
      ++texts;
    }
  }
  EXPECT_GT(texts, 300u);
}

TEST(AddedTokenFinder, ExplainsAnAddedToken) {
  VocabularyParts parts{.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"}};
  parts.added = {{.id = 6, .content = "Covid19", .normalized = true},
                 {.id = 7, .content = "[ENT]", .special = true}};
  const Tokenizer tokenizer(
      std::make_shared<const Vocabulary>(Vocabulary::from_parts(parts, "test")), Casing::kUncased);
  std::vector<ExplainedWord> words;
  tokenizer.explain("a COVID19 [ENT]", words);
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1].outcome, WordOutcome::kAddedToken);
  EXPECT_EQ(words[1].normalized, "Covid19");
  EXPECT_THAT(words[1].pieces, ElementsAre(Piece{6, 2, 9}));
  EXPECT_EQ(words[2].outcome, WordOutcome::kSpecialToken);
  EXPECT_THAT(words[2].pieces, ElementsAre(Piece{7, 10, 15}));
}

// Bytes that are not UTF-8 are dropped, beside added tokens as well.
TEST(AddedTokenFinder, InvalidBytesAreNoWords) {
  VocabularyParts parts{.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"}};
  parts.added = {{.id = 6, .content = "xy", .single_word = true, .lstrip = true, .rstrip = true}};
  Tokenizer tokenizer(std::make_shared<const Vocabulary>(Vocabulary::from_parts(parts, "test")),
                      Casing::kUncased);
  std::vector<Piece> pieces;
  tokenizer.encode_with_offsets("a\xFF xy\xE4\xBA", pieces);
  EXPECT_THAT(pieces, ElementsAre(Piece{5, 0, 1}, Piece{6, 2, 5}));
}

TEST(AddedTokenFinder, ATokenWithoutANormalFormIsNamed) {
  const std::vector<AddedToken> tokens = {{.id = 6, .content = "\xCC\x81", .normalized = true}};
  EXPECT_THAT(
      message_of([&] { AddedTokenFinder(tokens, Characters::get(Casing::kUncased)); }),
      HasSubstr("(id 6) is looked for in normalised text, and its own normal form is empty"));
}

TEST(AddedTokenIds, OfARepeatedAddedTokenTheLastIdCounts) {
  std::vector<AddedToken> added = {
      {.id = 0, .content = "x"}, {.id = 3, .content = "z"}, {.id = 1, .content = "x"}};
  take_last_ids({"x", "y", "x", "z", "x"}, added);
  EXPECT_EQ(added[0].id, 4);
  EXPECT_EQ(added[1].id, 3);
  EXPECT_EQ(added[2].id, 1);  // another token has this id: an error of from_parts()
}

}  // namespace
}  // namespace onebit::text
