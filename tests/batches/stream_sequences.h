// The sequences of a stream of batches over a store of short sentences, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "onebit/data/batches/batch_stream.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::batches {

inline constexpr int32_t kCls = 2, kSep = 3;

// One sequence, cut out of its batch.
struct Sequence {
  uint64_t sample;
  int32_t next_sentence;
  std::vector<int32_t> tokens, segments, positions, masked_positions, targets;
  std::vector<uint64_t> row_keys;

  bool operator==(const Sequence&) const = default;

  // The tokens before masking.
  std::vector<int32_t> text() const {
    std::vector<int32_t> whole = tokens;
    for (size_t i = 0; i < targets.size(); ++i) {
      whole[static_cast<size_t>(masked_positions[i])] = targets[i];
    }
    return whole;
  }
};

inline std::vector<Sequence> sequences_of(const Batch& batch) {
  std::vector<Sequence> sequences;
  const auto slice = [](const auto& values, int32_t begin, int32_t end) {
    return std::decay_t<decltype(values)>(values.begin() + begin, values.begin() + end);
  };
  for (size_t i = 0; i < batch.sequence_labels.size(); ++i) {
    const int32_t begin = batch.sequence_starts[i], end = batch.sequence_starts[i + 1];
    Sequence sequence{batch.samples[i], batch.sequence_labels[i], {}, {}, {}, {}, {}, {}};
    sequence.tokens = slice(batch.tokens, begin, end);
    sequence.segments = slice(batch.segments, begin, end);
    sequence.positions = slice(batch.positions, begin, end);
    sequence.row_keys = slice(batch.row_keys, begin, end);
    for (size_t m = 0; m < batch.labelled_rows.size(); ++m) {
      if (batch.labelled_rows[m] < begin || batch.labelled_rows[m] >= end) continue;
      sequence.masked_positions.push_back(batch.labelled_rows[m] - begin);
      sequence.targets.push_back(batch.row_labels[m]);
    }
    sequences.push_back(sequence);
  }
  return sequences;
}

class BatchStreamTest : public ::testing::Test {
 protected:
  BatchStreamTest()
      : store_(corpus::make_store(folder_ / "store", corpus::sample_documents(80, 11), 40000)) {}

  // All sequences of `steps` steps from `first_sample` on, by sample.
  std::map<uint64_t, Sequence> collect(const std::vector<WeightedStore>& stores,
                                       BatchStreamOptions options, uint64_t first_sample,
                                       int steps) {
    std::map<uint64_t, Sequence> found;
    for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
      BatchStream stream(stores, options);
      Batch batch;
      for (int step = 0; step < steps; ++step) {
        const uint64_t begin =
            first_sample + static_cast<uint64_t>(step) * stream.samples_per_step();
        for (int64_t micro_step = 0; micro_step < options.accumulation; ++micro_step) {
          stream.build(begin, micro_step, batch);
          for (const Sequence& sequence : sequences_of(batch)) {
            EXPECT_TRUE(found.emplace(sequence.sample, sequence).second) << sequence.sample;
          }
        }
      }
    }
    return found;
  }

  TemporaryFolder folder_;
  std::shared_ptr<const corpus::TokenStore> store_;
};

}  // namespace onebit::batches
