#include "onebit/apps/embed/embed_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/base/message_of.h"

namespace onebit::embed {
namespace {

using ::testing::HasSubstr;

// Text `part` of example i consists of i % 4 words "a" and a unique word.
struct Data {
  Data(int64_t count, Kind kind) {
    std::vector<std::string> words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
    examples.kind = kind;
    examples.texts.source = "f";
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t part = 0; part < parts_of(kind); ++part) {
        words.emplace_back(words.size(), 'x');
        std::string text;
        for (int64_t word = 0; word < i % 4; ++word) text += "a ";
        examples.texts.all.push_back({.text = text + words.back()});
      }
      if (kind == Kind::kScored) {
        examples.scores.push_back(static_cast<float>(i) / static_cast<float>(count));
      }
    }
    encoded = std::make_unique<finetune::EncodedExamples>(
        examples.texts.all,
        std::make_shared<text::Vocabulary>(text::Vocabulary::from_tokens(words, "words")),
        text::Casing::kUncased, finetune::EncodeOptions{});
  }

  Examples examples;
  std::unique_ptr<finetune::EncodedExamples> encoded;
};

// The text that a sequence of the batch is, by its own word.
int64_t text_of(const batches::Batch& batch, int64_t sequence) {
  const int32_t end = batch.sequence_starts[static_cast<size_t>(sequence) + 1];
  return batch.tokens[static_cast<size_t>(end) - 2] - 6;
}

TEST(EmbedStream, TextsOfAnExampleStandTogether) {
  for (const Kind kind : {Kind::kPairs, Kind::kTriplets, Kind::kScored}) {
    SCOPED_TRACE(name_of(kind));
    const Data data(11, kind);
    const int64_t parts = parts_of(kind);
    const ExampleStream stream(*data.encoded, data.examples,
                               {.seed = 3, .micro_batch = 4, .accumulation = 2});
    EXPECT_EQ(stream.samples_per_epoch(), 11u);
    EXPECT_EQ(stream.bounds().sequences, 4 * parts);
    EXPECT_EQ(stream.bounds().rows, 4 * parts * 6);
    batches::Batch batch;
    std::set<uint64_t> keys;
    size_t rows = 0;
    for (const int64_t micro_step : {0, 1}) {
      stream.build(0, micro_step, batch);
      ASSERT_EQ(batch.sequences(), 4 * parts);
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t example = text_of(batch, i * parts) / parts;
        for (int64_t part = 0; part < parts; ++part) {
          EXPECT_EQ(text_of(batch, i * parts + part), example * parts + part);
        }
        if (kind != Kind::kScored) continue;
        EXPECT_EQ(batch.sequence_values[static_cast<size_t>(i)],
                  data.examples.scores[static_cast<size_t>(example)]);
      }
      EXPECT_EQ(batch.sequence_values.empty(), kind != Kind::kScored);
      // One text only: there is no second segment.
      for (const int32_t segment : batch.segments) EXPECT_EQ(segment, 0);
      keys.insert(batch.row_keys.begin(), batch.row_keys.end());
      rows += batch.row_keys.size();
    }
    EXPECT_EQ(keys.size(), rows) << "two tokens of a step share their dropout";
  }
}

TEST(EmbedStream, AStepHasTheSameExamplesAtAnyNumberOfRanks) {
  const Data data(13, Kind::kPairs);
  const auto step = [&](int world) {
    std::multiset<int64_t> texts;
    for (int rank = 0; rank < world; ++rank) {
      const ExampleStream stream(
          *data.encoded, data.examples,
          {.seed = 3, .world_size = world, .rank = rank, .micro_batch = 8 / world});
      batches::Batch batch;
      stream.build(8, 0, batch);
      for (int64_t i = 0; i < batch.sequences(); ++i) texts.insert(text_of(batch, i));
    }
    return texts;
  };
  EXPECT_EQ(step(1).size(), 16u);
  EXPECT_EQ(step(2), step(1));
  EXPECT_EQ(step(4), step(1));
}

TEST(EmbedStream, TooFewExamplesForTheRanks) {
  const Data data(1, Kind::kPairs);
  EXPECT_THAT(message_of([&] { ExampleStream(*data.encoded, data.examples, {.world_size = 2}); }),
              HasSubstr("f: 1 examples are too few for 2 ranks"));
}

}  // namespace
}  // namespace onebit::embed
