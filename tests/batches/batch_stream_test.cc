#include "onebit/data/batches/batch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/base/message_of.h"
#include "tests/batches/stream_sequences.h"

namespace onebit::batches {
namespace {

using testing::HasSubstr;

TEST_F(BatchStreamTest, SequencesAreWellFormed) {
  for (const int64_t length : {8, 32, 128, 512}) {
    BatchStreamOptions options{.seed = 1, .micro_batch = 50};
    options.pairs.sequence_length = length;
    options.masks.max_predictions = 80;
    const auto found = collect({{store_}}, options, 0, 4);
    for (const auto& [sample, sequence] : found) {
      const auto size = static_cast<int64_t>(sequence.tokens.size());
      ASSERT_LE(size, length);
      const std::vector<int32_t> text = sequence.text();
      const auto middle = std::find(text.begin(), text.end(), kSep) - text.begin();
      ASSERT_EQ(text.front(), kCls);
      ASSERT_EQ(text.back(), kSep);
      ASSERT_GE(middle, 2);             // A holds a token
      ASSERT_GE(size - middle - 2, 1);  // B holds a token
      const auto a_document = store_->document_of(static_cast<uint64_t>(
          std::upper_bound(store_->sentence_offsets().begin(), store_->sentence_offsets().end(),
                           static_cast<uint64_t>(text[1] - corpus::kFirstWord)) -
          store_->sentence_offsets().begin() - 1));
      const auto b_first = static_cast<size_t>(middle) + 1;
      const auto b_document = store_->document_of(static_cast<uint64_t>(
          std::upper_bound(store_->sentence_offsets().begin(), store_->sentence_offsets().end(),
                           static_cast<uint64_t>(text[b_first] - corpus::kFirstWord)) -
          store_->sentence_offsets().begin() - 1));
      ASSERT_EQ(sequence.next_sentence == 1, a_document != b_document);
      if (sequence.next_sentence == 0) {
        ASSERT_GT(text[b_first], text[static_cast<size_t>(middle) - 1]);
      }
      for (int64_t position = 0; position < size; ++position) {
        const auto at = static_cast<size_t>(position);
        ASSERT_EQ(sequence.positions[at], position);
        ASSERT_EQ(sequence.segments[at], position <= middle ? 0 : 1);
        ASSERT_EQ(sequence.row_keys[at], sample << 16 | at);
        // Tokens of A follow each other in the text, and so do tokens of B.
        if (position != 0 && position != middle && position != size - 1 && position != 1 &&
            at != b_first) {
          ASSERT_EQ(text[at], text[at - 1] + 1);
        }
      }
    }
  }
}

TEST_F(BatchStreamTest, WithoutNextSentenceASequenceIsOneRunOfText) {
  BatchStreamOptions options{.seed = 1, .micro_batch = 50};
  options.pairs = {.sequence_length = 32, .next_sentence = false};
  int full = 0;
  for (const auto& [sample, sequence] : collect({{store_}}, options, 0, 4)) {
    const std::vector<int32_t> text = sequence.text();
    ASSERT_LE(text.size(), 32u);
    ASSERT_GE(text.size(), 3u);
    ASSERT_EQ(text.front(), kCls);
    ASSERT_EQ(text.back(), kSep);
    ASSERT_EQ(sequence.next_sentence, -1);
    for (size_t at = 2; at + 1 < text.size(); ++at) ASSERT_EQ(text[at], text[at - 1] + 1);
    for (const int32_t segment : sequence.segments) ASSERT_EQ(segment, 0);
    full += text.size() == 32;
  }
  EXPECT_GT(full, 100);  // of 200, where the others end a document or are short on purpose
}

TEST_F(BatchStreamTest, BatchesStayInTheirBounds) {
  BatchStreamOptions options{.micro_batch = 16};
  options.masks.whole_words = true;
  BatchStream stream({{store_}}, options);
  const BatchBounds bounds = stream.bounds();
  EXPECT_EQ(bounds.sequences, 16);
  EXPECT_EQ(bounds.rows, 16 * 128);
  EXPECT_EQ(bounds.labelled_rows, 16 * 19);
  Batch batch;
  batch.reserve(bounds);
  const auto capacities = [&batch] {
    return std::vector<size_t>{batch.tokens.capacity(),     batch.segments.capacity(),
                               batch.positions.capacity(),  batch.sequence_starts.capacity(),
                               batch.row_keys.capacity(),   batch.labelled_rows.capacity(),
                               batch.row_labels.capacity(), batch.sequence_labels.capacity(),
                               batch.samples.capacity()};
  };
  const std::vector<size_t> before = capacities();
  for (uint64_t step = 0; step < 50; ++step) {
    stream.build(step * 16, 0, batch);
    ASSERT_LE(batch.rows(), bounds.rows);
    ASSERT_LE(batch.labelled(), bounds.labelled_rows);
    ASSERT_EQ(batch.sequences(), bounds.sequences);
    ASSERT_EQ(batch.sequence_starts.size(), 17u);
    ASSERT_EQ(batch.sequence_starts.back(), batch.rows());
  }
  EXPECT_EQ(capacities(), before);
}

TEST_F(BatchStreamTest, RanksAndAccumulationShareTheSameSamples) {
  BatchStreamOptions options{.seed = 3, .micro_batch = 24};
  const auto one = collect({{store_}}, options, 240, 3);
  ASSERT_EQ(one.size(), 72u);
  for (const auto& [ranks, accumulation] : {std::pair{1, 6}, {2, 3}, {3, 2}, {6, 1}, {4, 2}}) {
    options.world_size = ranks;
    options.accumulation = accumulation;
    options.micro_batch = 24 / (ranks * accumulation);
    EXPECT_EQ(collect({{store_}}, options, 240, 3), one) << ranks;
  }
  options.step_samples = 24;
  for (const auto& [ranks, accumulation] : {std::pair{5, 1}, {5, 3}, {7, 4}}) {
    options.world_size = ranks;
    options.accumulation = accumulation;
    options.micro_batch = parts_of(options).largest();
    EXPECT_EQ(collect({{store_}}, options, 240, 3), one) << ranks;
  }
}

TEST_F(BatchStreamTest, ResumesAtAnySample) {
  const BatchStreamOptions options{.seed = 4, .micro_batch = 7};
  BatchStream first_epoch({{store_}}, options);
  const uint64_t epoch = first_epoch.first_epoch_examples();
  const int steps = static_cast<int>(2 * epoch / 7);
  const auto unbroken = collect({{store_}}, options, 0, steps);
  // A fresh stream each, also in and around the second epoch.
  for (const uint64_t start : {uint64_t{1}, epoch - 3, epoch, epoch + 1, epoch + epoch / 2}) {
    for (const auto& [sample, sequence] : collect({{store_}}, options, start, 2)) {
      ASSERT_EQ(sequence, unbroken.at(sample));
    }
  }
}

TEST_F(BatchStreamTest, ResumesLateWithoutCuttingEarlierEpochsAgain) {
  const auto small = corpus::make_store(folder_ / "small", corpus::sample_documents(5, 12), 40000);
  const std::vector<WeightedStore> by_size = {{store_}, {small}},
                                   weighted = {{store_, 1}, {small, 3}};
  const BatchStreamOptions options{.seed = 9, .micro_batch = 5};
  for (const auto& stores : {by_size, weighted}) {
    BatchStream unbroken(stores, options);
    const uint64_t epoch = unbroken.first_epoch_examples();
    for (const uint64_t samples : {uint64_t{0}, uint64_t{3}, epoch, epoch + 1, 6 * epoch + 20}) {
      const std::vector<EpochMark> marks = unbroken.marks(samples);
      BatchStream resumed(stores, options, marks), rebuilt(stores, options);
      EXPECT_EQ(resumed.first_epoch_examples(), epoch);
      EXPECT_EQ(resumed.indexes_built(), 0);
      EXPECT_EQ(resumed.positions(samples), rebuilt.positions(samples));
      EXPECT_EQ(resumed.marks(samples), marks);
      EXPECT_LE(resumed.indexes_built(), 2);  // the current epoch of each store
      EXPECT_GE(rebuilt.indexes_built(), samples > 6 * epoch ? 10 : 2);
      Batch one, other;
      for (uint64_t step = 0; step < epoch / 5; ++step) {
        unbroken.build(samples + 5 * step, 0, one);
        resumed.build(samples + 5 * step, 0, other);
        ASSERT_EQ(sequences_of(other), sequences_of(one)) << samples << " " << step;
      }
      // Samples before the mark are built again.
      unbroken.build(samples / 3, 0, one);
      resumed.build(samples / 3, 0, other);
      ASSERT_EQ(sequences_of(other), sequences_of(one)) << samples;
    }
  }
}

TEST_F(BatchStreamTest, RefusesMarksThatCannotBe) {
  for (const EpochMark& mark :
       {EpochMark{0, 0, 0}, EpochMark{5, 0, 1}, EpochMark{5, 1, 6}, EpochMark{5, 2, 5}}) {
    EXPECT_THAT(message_of([&] { BatchStream stream({{store_}}, {}, {mark}); }),
                HasSubstr("invalid data position"));
  }
}

TEST_F(BatchStreamTest, EveryEpochVisitsEveryExampleOnceInAnotherOrder) {
  const BatchStreamOptions options{.seed = 5, .micro_batch = 1};
  BatchStream stream({{store_}}, options);
  const uint64_t epoch = stream.first_epoch_examples();
  const DataPosition start_of_second = stream.positions(epoch)[0];
  EXPECT_EQ(start_of_second, (DataPosition{1, 0}));
  EXPECT_EQ(stream.positions(epoch - 1)[0], (DataPosition{0, epoch - 1}));
  const auto samples = collect({{store_}}, options, 0, static_cast<int>(2 * epoch));
  // The tokens of A and of a B that continues: each at most once an epoch, and nearly all of them
  // (the rest is what truncation cut off).
  std::map<int32_t, int> used;
  int repeated = 0, same_place = 0;
  for (const auto& [sample, sequence] : samples) {
    if (sample >= epoch) {
      repeated += samples.at(sample - epoch).text() == sequence.text();
      same_place += samples.at(sample - epoch).tokens == sequence.tokens;
      continue;
    }
    const std::vector<int32_t> text = sequence.text();
    for (size_t i = 0; i < text.size(); ++i) {
      const bool counts = sequence.segments[i] == 0 || sequence.next_sentence == 0;
      if (text[i] >= corpus::kFirstWord && counts) ++used[text[i]];
    }
  }
  for (const auto& [token, times] : used) ASSERT_EQ(times, 1) << token;
  EXPECT_GT(static_cast<double>(used.size()), 0.85 * static_cast<double>(store_->tokens()));
  EXPECT_LT(repeated, static_cast<int>(epoch) / 20);
  EXPECT_EQ(same_place, 0);
}

TEST_F(BatchStreamTest, SeedsAndEpochsMaskDifferently) {
  BatchStreamOptions options{.seed = 6, .micro_batch = 40};
  const auto one = collect({{store_}}, options, 0, 1);
  EXPECT_EQ(collect({{store_}}, options, 0, 1), one);
  options.seed = 7;
  const auto other = collect({{store_}}, options, 0, 1);
  int equal = 0;
  for (const auto& [sample, sequence] : one) equal += sequence == other.at(sample);
  EXPECT_EQ(equal, 0);
}

TEST_F(BatchStreamTest, MixesStoresByWeight) {
  const auto small = corpus::make_store(folder_ / "small", corpus::sample_documents(5, 12), 40000);
  const BatchStreamOptions options{.seed = 8, .micro_batch = 10};
  BatchStream stream({{store_, 1}, {small, 3}}, options);
  // Three in four are from the small store, of which they take several epochs.
  const std::vector<DataPosition> positions = stream.positions(400);
  EXPECT_EQ(positions[0], (DataPosition{0, 100}));
  EXPECT_GT(positions[1].epoch, 1u);
  const auto samples = collect({{store_, 1}, {small, 3}}, options, 0, 40);
  EXPECT_EQ(samples.size(), 400u);
  // Without weights, stores are mixed by their size.
  BatchStream by_size({{store_}, {small}}, options);
  const uint64_t epoch = by_size.first_epoch_examples();
  const auto ends = by_size.positions(epoch);
  for (const DataPosition& end : ends) {
    EXPECT_TRUE(end.index <= 1 || end.epoch == 0) << end.epoch << " " << end.index;
  }
}

TEST_F(BatchStreamTest, OneStoreServesEveryLength) {
  for (const int64_t length : {16, 300, 2048}) {
    BatchStreamOptions options{.micro_batch = 20};
    options.pairs.sequence_length = length;
    BatchStream stream({{store_}}, options);
    Batch batch;
    stream.build(0, 0, batch);
    EXPECT_EQ(batch.sequences(), 20);
  }
}

TEST_F(BatchStreamTest, RefusesWhatCannotWork) {
  const auto refused = [&](const std::vector<WeightedStore>& stores, BatchStreamOptions options) {
    return message_of([&] { BatchStream stream(stores, options); });
  };
  const auto tiny = corpus::make_store(folder_ / "tiny", {{4, 4}}, 40000);
  EXPECT_THAT(refused({{tiny}}, {.world_size = 4}),
              testing::AllOf(HasSubstr("for 4 ranks"), HasSubstr("fewer ranks or more text")));
  const auto foreign = corpus::make_store(folder_ / "foreign", {{4, 4}}, 500);
  EXPECT_THAT(refused({{tiny}, {foreign}}, {}), HasSubstr("different vocabularies"));
  EXPECT_THAT(refused({{tiny, 1}, {store_}}, {}), HasSubstr("1 of 2 stores have a weight"));
  EXPECT_THAT(refused({}, {}), HasSubstr("no store was given"));
  EXPECT_THAT(refused({{tiny}}, {.world_size = 2, .rank = 2}), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(refused({{tiny}}, {.micro_batch = 0}), HasSubstr("micro_batch is 0"));
  EXPECT_THAT(refused({{tiny}}, {.accumulation = 0}), HasSubstr("accumulation is 0"));
  EXPECT_THAT(refused({{tiny}}, {.pairs = {.sequence_length = 4}}),
              HasSubstr("sequence_length is 4"));
  EXPECT_THAT(refused({{tiny}}, {.pairs = {.short_sequence_probability = 2}}),
              HasSubstr("short_sequence_probability is 2"));
}

// Pairs and masks of a seed may never change silently: runs could not be resumed.
TEST_F(BatchStreamTest, GoldenSequence) {
  const auto samples = collect({{store_}}, {.seed = 2024, .micro_batch = 3}, 1000, 1);
  uint64_t digest = 0;
  for (const auto& [sample, sequence] : samples) {
    for (const int32_t token : sequence.tokens) {
      digest = digest * 6364136223846793005ull + static_cast<uint64_t>(token) + 1;
    }
  }
  EXPECT_EQ(digest, 10269397881842510612u);
}

}  // namespace
}  // namespace onebit::batches
