// Samples of several sequences, and shares of masked tokens that change in a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "onebit/data/batches/masking.h"
#include "tests/base/message_of.h"
#include "tests/batches/stream_sequences.h"

namespace onebit::batches {
namespace {

using testing::HasSubstr;

// The sequences of each sample.
using Samples = std::map<uint64_t, std::vector<Sequence>>;

PairOptions packed(int64_t length) {
  return {.sequence_length = length,
          .short_sequence_probability = 0,
          .next_sentence = false,
          .packing = true};
}

Samples collect_packed(const std::shared_ptr<const corpus::TokenStore>& store,
                       BatchStreamOptions options, uint64_t first_sample, int steps,
                       const std::vector<EpochMark>& marks = {}) {
  Samples found;
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    BatchStream stream({{store}}, options, marks);
    Batch batch;
    for (int step = 0; step < steps; ++step) {
      const uint64_t begin = first_sample + static_cast<uint64_t>(step) * stream.samples_per_step();
      for (int64_t micro_step = 0; micro_step < options.accumulation; ++micro_step) {
        stream.build(begin, micro_step, batch);
        for (const Sequence& sequence : sequences_of(batch)) {
          found[sequence.sample].push_back(sequence);
        }
      }
    }
  }
  return found;
}

int64_t rows_of(const std::vector<Sequence>& sample) {
  int64_t rows = 0;
  for (const Sequence& sequence : sample) rows += static_cast<int64_t>(sequence.tokens.size());
  return rows;
}

class PackedStreamTest : public BatchStreamTest {
 protected:
  uint64_t place_of(int32_t token) const {
    return static_cast<uint64_t>(token - corpus::kFirstWord);
  }
  uint64_t sentence_of(int32_t token) const {
    const auto offsets = store_->sentence_offsets();
    return static_cast<uint64_t>(std::upper_bound(offsets.begin(), offsets.end(), place_of(token)) -
                                 offsets.begin() - 1);
  }
  // Returns the samples of the first epoch.
  Samples epoch(const PairOptions& pairs, const std::shared_ptr<const corpus::TokenStore>& store) {
    const BatchStreamOptions options{.seed = 6, .micro_batch = 1, .pairs = pairs};
    const uint64_t samples = BatchStream({{store}}, options).first_epoch_examples();
    return collect_packed(store, options, 0, static_cast<int>(samples));
  }
};

TEST_F(PackedStreamTest, SequencesAreWholeSentencesOfOneDocument) {
  for (const int64_t length : {32, 64, 512}) {
    size_t most_sequences = 0;
    for (const auto& [sample, sequences] : epoch(packed(length), store_)) {
      ASSERT_LE(rows_of(sequences), length);
      most_sequences = std::max(most_sequences, sequences.size());
      uint64_t key = sample << 16;
      for (const Sequence& sequence : sequences) {
        const std::vector<int32_t> text = sequence.text();
        ASSERT_GE(text.size(), 3u);
        ASSERT_EQ(text.front(), kCls);
        ASSERT_EQ(text.back(), kSep);
        ASSERT_EQ(sequence.next_sentence, -1);
        for (size_t at = 2; at + 1 < text.size(); ++at) ASSERT_EQ(text[at], text[at - 1] + 1);
        const int32_t first = text[1], last = text[text.size() - 2];
        EXPECT_EQ(store_->sentence_begin(sentence_of(first)), place_of(first));
        EXPECT_EQ(store_->sentence_begin(sentence_of(last) + 1), place_of(last) + 1);
        EXPECT_EQ(store_->document_of(sentence_of(first)), store_->document_of(sentence_of(last)));
        for (size_t at = 0; at < text.size(); ++at) {
          ASSERT_EQ(sequence.positions[at], static_cast<int32_t>(at));
          ASSERT_EQ(sequence.segments[at], 0);
          ASSERT_EQ(sequence.row_keys[at], key++);
        }
      }
    }
    EXPECT_GT(most_sequences, 1u) << length;
  }
}

// A sample ends where the next sentence does not fit, except at the end of a block of 64 full
// samples.
TEST_F(PackedStreamTest, AnEpochReadsEveryTokenOnceInFullSamples) {
  for (const int64_t length : {32, 64, 512}) {
    std::map<int32_t, int64_t> rows_by_first;
    std::map<int32_t, int32_t> last_of;
    std::set<int32_t> seen;
    for (const auto& [sample, sequences] : epoch(packed(length), store_)) {
      for (const Sequence& sequence : sequences) {
        for (const int32_t token : sequence.text()) {
          const bool is_new = token < corpus::kFirstWord || seen.insert(token).second;
          EXPECT_TRUE(is_new) << token;
        }
      }
      const int32_t first = sequences.front().text()[1];
      const std::vector<int32_t> end = sequences.back().text();
      rows_by_first[first] = rows_of(sequences);
      last_of[first] = end[end.size() - 2];
    }
    EXPECT_EQ(seen.size(), store_->tokens());
    int64_t early = 0;
    for (auto sample = rows_by_first.begin(); std::next(sample) != rows_by_first.end(); ++sample) {
      const auto next = std::next(sample);
      ASSERT_EQ(next->first, last_of[sample->first] + 1);
      const uint64_t sentence = sentence_of(next->first);
      const uint64_t size = store_->sentence_begin(sentence + 1) - store_->sentence_begin(sentence);
      early += sample->second + static_cast<int64_t>(size) + 2 <= length;
    }
    const auto tokens = static_cast<int64_t>(store_->tokens());
    EXPECT_LE(early, tokens / (64 * length) + 1) << length;
    const auto samples = static_cast<int64_t>(rows_by_first.size());
    EXPECT_GE(tokens, samples * length * (length >= 512 ? 9 : 6) / 10) << length;
  }
}

TEST_F(PackedStreamTest, PiecesOfLongSentencesStayInTheirSample) {
  const auto store =
      corpus::make_store(folder_ / "long", {{7, 30000, 5}, {900, 3}, {4, 4}, {2000}}, 0, true);
  for (const int64_t length : {16, 64, 512}) {
    uint64_t text = 0;
    std::set<int32_t> seen;
    for (const auto& [sample, sequences] : epoch(packed(length), store)) {
      ASSERT_LE(rows_of(sequences), length);
      for (const Sequence& sequence : sequences) {
        ASSERT_GE(sequence.tokens.size(), 3u);
        text += sequence.tokens.size() - 2;
        for (const int32_t token : sequence.text()) {
          const bool is_new = token < corpus::kFirstWord || seen.insert(token).second;
          EXPECT_TRUE(is_new) << token;
        }
      }
    }
    EXPECT_GE(text, store->tokens() * 9 / 10) << length;
  }
}

TEST_F(PackedStreamTest, RanksAccumulationAndThreadsShareTheSameSamples) {
  BatchStreamOptions options{.seed = 3, .micro_batch = 24, .pairs = packed(64)};
  const Samples one = collect_packed(store_, options, 240, 3);
  ASSERT_EQ(one.size(), 72u);
  for (const auto& [ranks, accumulation] : {std::pair{1, 6}, {2, 3}, {6, 1}, {4, 2}}) {
    options.world_size = ranks;
    options.accumulation = accumulation;
    options.micro_batch = 24 / (ranks * accumulation);
    options.threads = ranks * 5;
    EXPECT_EQ(collect_packed(store_, options, 240, 3), one) << ranks;
  }
}

TEST_F(PackedStreamTest, ResumesAtAnySample) {
  const BatchStreamOptions options{.seed = 4, .micro_batch = 7, .pairs = packed(128)};
  BatchStream stream({{store_}}, options);
  const uint64_t size = stream.first_epoch_examples();
  const Samples unbroken = collect_packed(store_, options, 0, static_cast<int>(2 * size / 7));
  for (const uint64_t start : {uint64_t{1}, size - 3, size, size + 1, size + size / 2}) {
    for (const auto& marks : {std::vector<EpochMark>{}, stream.marks(start)}) {
      for (const auto& [sample, sequences] : collect_packed(store_, options, start, 2, marks)) {
        ASSERT_EQ(sequences, unbroken.at(sample)) << start;
      }
    }
  }
  EXPECT_NE(unbroken.at(0), unbroken.at(size));
}

TEST_F(PackedStreamTest, BatchesStayInTheirBounds) {
  const auto tiny = corpus::make_store(
      folder_ / "tiny", std::vector<corpus::SampleDocument>(3000, corpus::SampleDocument{1}),
      40000);
  BatchStreamOptions options{.micro_batch = 4, .pairs = packed(64)};
  options.masks = {.probability = 0.3, .max_predictions = 20};
  BatchStream stream({{tiny}}, options);
  const BatchBounds bounds = stream.bounds();
  EXPECT_EQ(bounds.sequences, 4 * 21);
  EXPECT_EQ(bounds.rows, 4 * 64);
  EXPECT_EQ(bounds.labelled_rows, 4 * 19);
  Batch batch;
  batch.reserve(bounds);
  const size_t starts = batch.sequence_starts.capacity(), rows = batch.tokens.capacity();
  for (uint64_t step = 0; step < 30; ++step) {
    stream.build(step * 4, 0, batch);
    ASSERT_LE(batch.sequences(), bounds.sequences);
    ASSERT_EQ(batch.sample_count(), 4);
    ASSERT_LE(batch.labelled(), bounds.labelled_rows);
  }
  EXPECT_EQ(batch.sequence_starts.capacity(), starts);
  EXPECT_EQ(batch.tokens.capacity(), rows);
}

TEST_F(PackedStreamTest, APackedSampleMasksItsShare) {
  BatchStreamOptions options{.seed = 3, .micro_batch = 10, .pairs = packed(128)};
  options.masks = {.probability = 0.3, .max_predictions = 1000};
  for (const auto& [sample, sequences] : collect_packed(store_, options, 0, 5)) {
    int64_t masked = 0;
    for (const Sequence& sequence : sequences) {
      masked += static_cast<int64_t>(sequence.targets.size());
    }
    EXPECT_EQ(masked, prediction_count(rows_of(sequences), 0.3, 1000)) << sample;
  }
}

TEST_F(PackedStreamTest, RefusesPairs) {
  BatchStreamOptions options;
  options.pairs.packing = true;
  EXPECT_THAT(message_of([&] { BatchStream stream({{store_}}, options); }),
              HasSubstr("cannot be packed with next_sentence"));
}

// Each share applies from its step on, with the same samples, and a resumed run has the same.
TEST_F(PackedStreamTest, SharesOfMaskedTokensFollowTheStep) {
  BatchStreamOptions options{.seed = 3, .micro_batch = 4, .pairs = packed(128)};
  options.masks = {.probability = 0.3, .max_predictions = 1000};
  options.masks.probability_since = {{2, 0.15}, {4, 0.05}};
  const auto masked_in = [&](const BatchStreamOptions& given, uint64_t step) {
    BatchStream stream({{store_}}, given);
    Batch batch;
    stream.build(step * stream.samples_per_step(), 0, batch);
    return static_cast<double>(batch.labelled()) / static_cast<double>(batch.rows());
  };
  for (const auto& [step, share] :
       {std::pair{0, 0.3}, {1, 0.3}, {2, 0.15}, {3, 0.15}, {4, 0.05}, {9, 0.05}}) {
    EXPECT_NEAR(masked_in(options, static_cast<uint64_t>(step)), share, 0.005) << step;
  }
  options.masks.probability_since.clear();
  options.masks.final_probability = 0.1;
  options.masks.updates = 10;
  for (const auto& [step, share] : {std::pair{0, 0.3}, {5, 0.2}, {10, 0.1}, {12, 0.1}}) {
    EXPECT_NEAR(masked_in(options, static_cast<uint64_t>(step)), share, 0.005) << step;
  }
  EXPECT_EQ(options.masks.largest_probability(), 0.3);
  EXPECT_DOUBLE_EQ(options.masks.probability_at(3), 0.24);
}

}  // namespace
}  // namespace onebit::batches
