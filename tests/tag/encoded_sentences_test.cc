#include "onebit/apps/tag/encoded_sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ids from 5: a, b, c, ##d.
std::shared_ptr<const text::Vocabulary> vocabulary() {
  return std::make_shared<text::Vocabulary>(text::Vocabulary::from_tokens(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##d"}, "words"));
}

Sentence sentence(const std::vector<std::string>& words) {
  Sentence one;
  for (const std::string& word : words) one.add_word(word);
  return one;
}

EncodedSentences encoded(const std::vector<Sentence>& sentences,
                         const EncodeOptions& options = {}) {
  return {sentences, vocabulary(), text::Casing::kUncased, options};
}

struct Row {
  std::vector<int32_t> tokens, labelled_rows;
};

Row row_of(const EncodedSentences& all, uint32_t window) {
  batches::Batch batch;
  batch.clear();
  all.append(window, 7, batch);
  EXPECT_EQ(batch.sequences(), 1);
  EXPECT_EQ(batch.segments, std::vector<int32_t>(batch.tokens.size(), 0));
  return {batch.tokens, batch.labelled_rows};
}

TEST(EncodedSentences, TheFirstPieceOfEachWordIsTagged) {
  const EncodedSentences all = encoded({sentence({"a", "bdd", "c", "a-b"})});
  EXPECT_EQ(all.words(), 4);
  EXPECT_THAT(all.lengths(), ElementsAre(10));
  const Row row = row_of(all, 0);
  EXPECT_THAT(row.tokens, ElementsAre(2, 5, 6, 8, 8, 7, 5, 1, 6, 3));
  EXPECT_THAT(row.labelled_rows, ElementsAre(1, 2, 5, 6));
}

TEST(EncodedSentences, RowsCountFromTheBatch) {
  const EncodedSentences all = encoded({sentence({"a", "b"}), sentence({"c"})});
  batches::Batch batch;
  batch.clear();
  all.append(1, 0, batch);
  all.append(0, 1, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(2, 7, 3, 2, 5, 6, 3));
  EXPECT_THAT(batch.labelled_rows, ElementsAre(1, 4, 5));
}

TEST(EncodedSentences, AWordThatVanishesIsUnknown) {
  const Row row = row_of(encoded({sentence({"a", "\xE2\x80\x8D", "b"})}), 0);
  EXPECT_THAT(row.tokens, ElementsAre(2, 5, 1, 6, 3));
  EXPECT_THAT(row.labelled_rows, ElementsAre(1, 2, 3));
}

TEST(EncodedSentences, LongSentencesAreSeveralSequences) {
  const std::vector<std::string> words = {"a", "b", "c", "a", "b", "c", "a"};
  const EncodedSentences all = encoded({sentence({"c"}), sentence(words), sentence({})},
                                       {.max_sequence_length = 7, .stride = 2});
  EXPECT_EQ(all.split(), 1);
  EXPECT_EQ(all.words(), 8);
  EXPECT_EQ(all.longest(), 7);
  EXPECT_EQ(all.most_owned(), 4);
  ASSERT_EQ(all.windows().size(), 3u);
  EXPECT_EQ(all.windows()[1].first_word, 1u);
  EXPECT_EQ(all.windows()[2].first_word, 5u);
  EXPECT_THAT(row_of(all, 1).labelled_rows, ElementsAre(1, 2, 3, 4));
  const Row last = row_of(all, 2);
  EXPECT_THAT(last.tokens, ElementsAre(2, 7, 5, 6, 7, 5, 3));
  EXPECT_THAT(last.labelled_rows, ElementsAre(3, 4, 5));
}

TEST(EncodedSentences, WordsLongerThanASequenceAreCutAndCounted) {
  const EncodedSentences all =
      encoded({sentence({"a", "bdddd", "c"})}, {.max_sequence_length = 5, .stride = 2});
  EXPECT_EQ(all.cut_words(), 1);
  EXPECT_EQ(all.words(), 3);
  ASSERT_EQ(all.windows().size(), 3u);
  EXPECT_THAT(row_of(all, 1).tokens, ElementsAre(2, 6, 8, 8, 3));
}

TEST(EncodedSentences, WrongOptions) {
  EXPECT_THAT(message_of([] { encoded({}, {.max_sequence_length = 2}); }),
              HasSubstr("a sequence length of 2 leaves no room"));
  EXPECT_THAT(message_of([] { encoded({}, {.stride = 0}); }), HasSubstr("the stride is 0"));
}

// Compares with Hugging Face's `tokenizers`, whose results tools/make_tag_goldens.py recorded.
TEST(EncodedSentences, PiecesAreThoseOfTokenizers) {
  const Json golden = read_json(Path(ONEBIT_SOURCE_DIR) / "tests/tag/golden/encoding.json");
  const auto words = std::make_shared<text::Vocabulary>(
      text::Vocabulary::load(Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/vocab.txt"));
  size_t vanished = 0;
  for (const Json& row : golden.at("rows")) {
    const bool lower = row.at("lowercase").get<bool>();
    const std::vector<Sentence> one = {sentence({row.at("word").get<std::string>()})};
    const EncodedSentences all(one, words, lower ? text::Casing::kUncased : text::Casing::kCased,
                               {});
    auto expected = row.at("ids").get<std::vector<int32_t>>();
    vanished += expected.empty() ? 1 : 0;
    if (expected.empty()) expected.push_back(words->unknown_id());
    expected.insert(expected.begin(), words->cls_id());
    expected.push_back(words->sep_id());
    EXPECT_EQ(row_of(all, 0).tokens, expected) << row.dump();
  }
  EXPECT_GE(golden.at("rows").size(), 40u);
  EXPECT_GE(vanished, 4u);
}

}  // namespace
}  // namespace onebit::tag
