#include "onebit/training/finetune/encoded_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::finetune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const text::Vocabulary> vocabulary() {
  return std::make_shared<text::Vocabulary>(text::Vocabulary::from_tokens(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"}, "words"));
}

EncodedExamples encoded(const std::vector<Example>& examples, const EncodeOptions& options) {
  return {examples, vocabulary(), text::Casing::kUncased, options};
}

// Compares with Hugging Face's `tokenizers`, whose results tools/make_classify_goldens.py recorded.
TEST(EncodedExamples, PairsAreCutAsTokenizersDoes) {
  const Json golden = read_json(Path(ONEBIT_SOURCE_DIR) / "tests/classify/golden/scores.json");
  ASSERT_GE(golden.at("cuts").size(), 200u);
  for (const Json& row : golden.at("cuts")) {
    const auto number = [&](size_t i) { return row[i].get<int64_t>(); };
    EXPECT_EQ(cut_longest_first({number(0), number(1)}, number(2)),
              (PartLengths{number(3), number(4)}))
        << row.dump();
  }
}

TEST(EncodedExamples, OneText) {
  const EncodedExamples all =
      encoded({{.text = "a b"}, {.text = ""}, {.text = "c c c a"}}, {.max_sequence_length = 5});
  EXPECT_THAT(all.lengths(), ElementsAre(4, 2, 5));
  EXPECT_EQ(all.longest(), 5);
  EXPECT_EQ(all.cut(), 1);
  batches::Batch rows;
  rows.clear();
  all.append(2, 9, rows);
  all.append(0, 4, rows);
  EXPECT_THAT(rows.tokens, ElementsAre(2, 7, 7, 7, 3, 2, 5, 6, 3));
  EXPECT_THAT(rows.segments, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(rows.positions, ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3));
  EXPECT_THAT(rows.sequence_starts, ElementsAre(0, 5, 9));
  EXPECT_THAT(rows.samples, ElementsAre(9, 4));
  EXPECT_EQ(rows.row_keys[6], (uint64_t{4} << 16) + 1);
}

TEST(EncodedExamples, APair) {
  const EncodedExamples all =
      encoded({{.text = "a a a a", .text_pair = "b"}, {.text = "a", .text_pair = ""}},
              {.max_sequence_length = 7, .has_pairs = true, .threads = 2});
  EXPECT_EQ(all.cut(), 1);
  batches::Batch rows;
  rows.clear();
  all.append(0, 0, rows);
  all.append(1, 1, rows);
  EXPECT_THAT(rows.tokens, ElementsAre(2, 5, 5, 5, 3, 6, 3, 2, 5, 3, 3));
  EXPECT_THAT(rows.segments, ElementsAre(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1));
}

// A tokenizer that gives no token_type_ids: both texts are in segment 0, whatever its template.
TEST(EncodedExamples, APairWithoutSegments) {
  text::VocabularyParts parts = vocabulary()->parts();
  parts.has_segments = false;
  const auto words =
      std::make_shared<const text::Vocabulary>(text::Vocabulary::from_parts(parts, "words"));
  const std::vector<Example> examples = {{.text = "a", .text_pair = "b"}};
  const EncodedExamples all(examples, words, text::Casing::kUncased,
                            {.max_sequence_length = 7, .has_pairs = true});
  batches::Batch rows;
  rows.clear();
  all.append(0, 0, rows);
  EXPECT_THAT(rows.tokens, ElementsAre(2, 5, 3, 6, 3));
  EXPECT_THAT(rows.segments, ElementsAre(0, 0, 0, 0, 0));
}

TEST(EncodedExamples, RoomForTheSpecialTokens) {
  EXPECT_THAT(message_of([] { encoded({{.text = "a"}}, {.max_sequence_length = 2}); }),
              HasSubstr("2 tokens are special; choose a longer one"));
}

}  // namespace
}  // namespace onebit::finetune
