#include "onebit/apps/classify/classify_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::classify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Example i consists of i % 5 words "a" and a unique word.
finetune::EncodedExamples examples(int64_t count) {
  std::vector<std::string> words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
  std::vector<finetune::Example> all;
  for (int64_t i = 0; i < count; ++i) {
    words.emplace_back(static_cast<size_t>(i + 1), 'x');
    std::string text;
    for (int64_t word = 0; word < i % 5; ++word) text += "a ";
    all.push_back({.text = text + words.back()});
  }
  const auto vocabulary =
      std::make_shared<text::Vocabulary>(text::Vocabulary::from_tokens(words, "words"));
  return {all, vocabulary, text::Casing::kUncased, {}};
}

// The example that a sequence of the batch is, by its own word.
int64_t example_of(const batches::Batch& batch, int64_t sequence) {
  const int32_t end = batch.sequence_starts[static_cast<size_t>(sequence) + 1];
  return batch.tokens[static_cast<size_t>(end) - 2] - 6;
}

TEST(ExampleStream, LabelsBelongToTheirSequences) {
  const finetune::EncodedExamples all = examples(11);
  Targets targets = {.outputs = 3};
  for (int32_t i = 0; i < 11; ++i) targets.classes.push_back(i % 3);
  const ExampleStream stream(all, targets, {.seed = 3, .micro_batch = 4, .accumulation = 2}, "f");
  EXPECT_EQ(stream.samples_per_epoch(), 11u);
  EXPECT_EQ(stream.bounds().rows, 4 * 7);
  EXPECT_EQ(stream.bounds().sequence_values, 0);
  batches::Batch batch;
  for (uint64_t sample : {0, 8, 16}) {
    for (int64_t micro_step : {0, 1}) {
      stream.build(sample, micro_step, batch);
      ASSERT_EQ(batch.sequences(), 4);
      EXPECT_TRUE(batch.sequence_values.empty());
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(batch.sequence_labels[static_cast<size_t>(i)], example_of(batch, i) % 3);
      }
    }
  }
}

TEST(ExampleStream, ValuesBelongToTheirSequences) {
  const finetune::EncodedExamples all = examples(5);
  Targets targets = {.problem = Problem::kMultiLabel, .outputs = 2};
  for (int i = 0; i < 5; ++i) {
    targets.values.push_back(static_cast<float>(i));
    targets.values.push_back(static_cast<float>(10 * i));
  }
  const ExampleStream stream(all, targets, {.seed = 3, .micro_batch = 3}, "f");
  EXPECT_EQ(stream.bounds().sequence_values, 6);
  batches::Batch batch;
  stream.build(3, 0, batch);
  ASSERT_EQ(batch.sequence_values.size(), 6u);
  EXPECT_TRUE(batch.sequence_labels.empty());
  for (int64_t i = 0; i < 3; ++i) {
    const auto example = static_cast<float>(example_of(batch, i));
    EXPECT_EQ(batch.sequence_values[static_cast<size_t>(2 * i)], example);
    EXPECT_EQ(batch.sequence_values[static_cast<size_t>(2 * i + 1)], 10 * example);
  }
}

TEST(ExampleStream, BatchesForPrediction) {
  const finetune::EncodedExamples all = examples(5);
  batches::Batch batch;
  const std::vector<uint32_t> which = {4, 0};
  finetune::build_batch(all, which, batch);
  EXPECT_EQ(example_of(batch, 0), 4);
  EXPECT_EQ(example_of(batch, 1), 0);
  EXPECT_THAT(batch.sequence_starts, ElementsAre(0, 7, 10));
}

TEST(ExampleStream, TooFewExamples) {
  const finetune::EncodedExamples all = examples(2);
  const Targets targets = {.outputs = 2, .classes = {0, 1}};
  EXPECT_THAT(message_of([&] { ExampleStream(all, targets, {.world_size = 3}, "train.tsv"); }),
              HasSubstr("train.tsv: 2 examples are too few for 3 ranks"));
}

}  // namespace
}  // namespace onebit::classify
