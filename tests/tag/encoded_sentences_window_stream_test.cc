#include "onebit/apps/tag/encoded_sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/base/message_of.h"

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sentence i has i % 5 + 1 words, each with a unique token, so that a token identifies its word.
struct Made {
  std::vector<Sentence> sentences;
  std::shared_ptr<const text::Vocabulary> vocabulary;
  std::vector<int32_t> targets;
};

Made made(int64_t count) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  Made all;
  for (int64_t i = 0; i < count; ++i) {
    Sentence& one = all.sentences.emplace_back();
    for (int64_t word = 0; word <= i % 5; ++word) {
      tokens.emplace_back(tokens.size(), 'x');
      one.add_word(tokens.back());
      all.targets.push_back(static_cast<int32_t>(all.targets.size()));
    }
  }
  all.vocabulary =
      std::make_shared<text::Vocabulary>(text::Vocabulary::from_tokens(tokens, "words"));
  return all;
}

EncodedSentences encoded(const Made& all) {
  return {all.sentences,
          all.vocabulary,
          text::Casing::kUncased,
          {.max_sequence_length = 5, .stride = 2}};
}

TEST(WindowStream, EveryWordOnceAnEpochWithItsTag) {
  const Made all = made(20);
  const EncodedSentences sentences = encoded(all);
  ASSERT_GT(sentences.windows().size(), 20u);  // sentences of four and five words are two
  const auto samples = static_cast<uint64_t>(sentences.windows().size());
  const WindowStream stream(sentences, all.targets, {.seed = 3, .micro_batch = 1}, "f");
  EXPECT_EQ(stream.samples_per_epoch(), samples);
  std::map<int32_t, int> seen;
  batches::Batch batch;
  for (uint64_t sample = 0; sample < samples; ++sample) {
    stream.build(sample, 0, batch);
    ASSERT_EQ(batch.row_labels.size(), batch.labelled_rows.size());
    for (size_t i = 0; i < batch.row_labels.size(); ++i) {
      EXPECT_EQ(batch.tokens[static_cast<size_t>(batch.labelled_rows[i])] - 5, batch.row_labels[i]);
      ++seen[batch.row_labels[i]];
    }
  }
  EXPECT_EQ(seen.size(), all.targets.size());
  for (const auto& [word, times] : seen) EXPECT_EQ(times, 1) << word;
}

TEST(WindowStream, BatchesKeepTheirBounds) {
  const Made all = made(20);
  const EncodedSentences sentences = encoded(all);
  const WindowStream stream(sentences, all.targets,
                            {.seed = 3, .micro_batch = 3, .accumulation = 2}, "f");
  EXPECT_EQ(stream.bounds().sequences, 3);
  EXPECT_EQ(stream.bounds().rows, 15);
  EXPECT_EQ(stream.bounds().labelled_rows, 9);
  batches::Batch batch;
  for (const uint64_t sample : {0, 6, 12, 18, 24}) {
    for (const int64_t micro_step : {0, 1}) {
      stream.build(sample, micro_step, batch);
      EXPECT_EQ(batch.sequences(), 3);
      EXPECT_LE(batch.rows(), 15);
      EXPECT_LE(batch.row_labels.size(), 9u);
    }
  }
}

TEST(WindowStream, BatchesForPrediction) {
  const Made all = made(3);
  batches::Batch batch;
  const std::vector<uint32_t> which = {2, 0};
  build_batch(encoded(all), which, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(2, 8, 9, 10, 3, 2, 5, 3));
  EXPECT_THAT(batch.labelled_rows, ElementsAre(1, 2, 3, 6));
  EXPECT_TRUE(batch.row_labels.empty());
}

TEST(WindowStream, TooFewForTheRanks) {
  const Made all = made(1);
  const EncodedSentences sentences = encoded(all);
  EXPECT_THAT(
      message_of([&] { WindowStream(sentences, all.targets, {.world_size = 2}, "t.conll"); }),
      HasSubstr("t.conll: 1 sequences are too few for 2 ranks"));
}

}  // namespace
}  // namespace onebit::tag
