#include "onebit/data/batches/example_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "onebit/data/batches/batch_stream.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"
#include "tests/samples/golden_store.h"

namespace onebit::batches {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr PairOptions kPairs = {.sequence_length = 24};

class SampleSourceTest : public testing::Test {
 protected:
  SampleSourceTest() : store_(samples::make_golden_store(folder_ / "store")) {}

  static BatchStreamOptions options(int world_size) {
    return {.seed = 9,
            .world_size = world_size,
            .micro_batch = 4,
            .accumulation = 2 / world_size,
            .pairs = kPairs};
  }

  // Reads the writer's samples from a batch, by global sample number.
  static void read(const Batch& batch, std::map<uint64_t, std::string>& found) {
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const int32_t begin = batch.sequence_starts[i], end = batch.sequence_starts[i + 1];
      samples::Sample sample;
      sample.tokens.assign(batch.tokens.begin() + begin, batch.tokens.begin() + end);
      const auto first = batch.segments.begin() + begin, last = batch.segments.begin() + end;
      EXPECT_TRUE(std::is_sorted(first, last));
      sample.first_part = static_cast<int32_t>(std::count(first, last, 0));
      for (size_t m = 0; m < batch.labelled_rows.size(); ++m) {
        if (batch.labelled_rows[m] < begin || batch.labelled_rows[m] >= end) continue;
        sample.masked_positions.push_back(batch.labelled_rows[m] - begin);
        sample.masked_ids.push_back(batch.row_labels[m]);
      }
      sample.next_sentence = batch.sequence_labels[i];
      found[batch.samples[i]] = in_words(sample);
    }
    EXPECT_TRUE(std::is_sorted(batch.labelled_rows.begin(), batch.labelled_rows.end()));
  }
  std::map<uint64_t, std::string> collect(int world_size, int steps) const {
    std::map<uint64_t, std::string> found;
    BatchStreamOptions given = options(world_size);
    Batch batch;
    for (given.rank = 0; given.rank < world_size; ++given.rank) {
      BatchStream stream({{.store = store_}}, given);
      for (int step = 0; step < steps; ++step) {
        for (int64_t micro_step = 0; micro_step < given.accumulation; ++micro_step) {
          stream.build(static_cast<uint64_t>(step) * stream.samples_per_step(), micro_step, batch);
          EXPECT_LE(batch.rows(), stream.bounds().rows);
          EXPECT_LE(batch.labelled(), stream.bounds().labelled_rows);
          read(batch, found);
        }
      }
    }
    return found;
  }
  std::string message(const PairOptions& pairs) const {
    return message_of([&] { SampleSource(store_, pairs, 1); });
  }

  TemporaryFolder folder_;
  std::shared_ptr<const samples::SampleStore> store_;
};

TEST_F(SampleSourceTest, EveryEpochHasWhatTheWriterMeant) {
  const auto found = collect(1, 6);  // three epochs of 16
  ASSERT_EQ(found.size(), 48u);
  std::vector<std::string> meant = samples::golden_words();
  std::sort(meant.begin(), meant.end());
  std::vector<std::vector<std::string>> epochs(3);
  for (const auto& [sample, words] : found) epochs[sample / 16].push_back(words);
  EXPECT_NE(epochs[0], epochs[1]);  // in another order
  for (std::vector<std::string>& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, meant);
  }
}

TEST_F(SampleSourceTest, TwoRanksShareTheSamplesOfOne) {
  EXPECT_EQ(collect(2, 5), collect(1, 5));
}

TEST_F(SampleSourceTest, BoundsAreThoseOfTheStore) {
  BatchStream stream({{.store = store_}}, options(1));
  EXPECT_EQ(stream.bounds().rows, 4 * static_cast<int64_t>(store_->manifest().longest_tokens));
  EXPECT_EQ(stream.bounds().labelled_rows,
            4 * static_cast<int64_t>(store_->manifest().most_masked));
}

TEST_F(SampleSourceTest, PositionsAndMarks) {
  SampleSource source(store_, kPairs, 1);
  EXPECT_EQ(source.first_epoch_examples(), 16u);
  EXPECT_EQ(source.locate(37), (DataPosition{2, 5}));
  const EpochMark mark = source.mark(37);
  EXPECT_EQ(mark, (EpochMark{16, 2, 32}));
  source.restore(mark);
  EXPECT_THAT(message_of([&] { source.restore({16, 2, 33}); }), HasSubstr("invalid data position"));
  EXPECT_THAT(message_of([&] { source.restore({15, 2, 30}); }), HasSubstr("invalid data position"));
  EXPECT_EQ(source.indexes_built(), 0);
}

TEST_F(SampleSourceTest, LabelsAreLeftOutUnlessRequested) {
  SampleSource source(store_, {.sequence_length = 24, .next_sentence = false}, 1);
  Batch batch;
  batch.clear();
  source.append({0, 3}, 3, 0.15, batch);
  EXPECT_THAT(batch.sequence_labels, testing::ElementsAre(-1));
}

TEST_F(SampleSourceTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(message({.sequence_length = 16}),
              AllOf(HasSubstr("samples of up to 24 tokens"), HasSubstr("data.sequence_length")));
  const auto bare = samples::make_golden_store(folder_ / "bare", false);
  EXPECT_THAT(message_of([&] { SampleSource(bare, kPairs, 1); }),
              AllOf(HasSubstr("no next-sentence label"), HasSubstr("data.next_sentence to false")));
}

TEST_F(SampleSourceTest, HeldOutSamplesAreTheSameEachTime) {
  const auto all = [&](int world_size) {
    std::map<uint64_t, std::string> found;
    Batch batch;
    for (int rank = 0; rank < world_size; ++rank) {
      EvaluationStream stream(
          store_, {.seed = 5, .world_size = world_size, .rank = rank, .batch = 3, .pairs = kPairs});
      EXPECT_EQ(stream.samples(), 16u);
      for (int64_t index = 0; index < stream.batches(); ++index) {
        stream.build(index, batch);
        read(batch, found);
      }
    }
    return found;
  };
  EXPECT_EQ(all(1).size(), 16u);
  EXPECT_EQ(all(2), all(1));
}

// A store of text and one of samples in one run.
TEST_F(SampleSourceTest, MixesWithATokenStore) {
  const std::shared_ptr<const corpus::Store> opened = open_store(folder_ / "store");
  EXPECT_NE(std::dynamic_pointer_cast<const samples::SampleStore>(opened), nullptr);
  corpus::StoreWriter writer(folder_ / "text", false);
  writer.set_vocabulary(samples::golden_vocabulary(), text::Casing::kUncased);
  corpus::TokenizedBlock block(writer.token_size_bytes(), 0);
  for (int document = 0; document < 8; ++document) {
    for (int sentence = 0; sentence < 6; ++sentence) block.add_sentence({9, 8, 7, 6});
    block.end_document();
  }
  block.close();
  writer.add(block);
  writer.finish(0, "text", {"text"});
  BatchStream stream(
      {{.store = opened, .weight = 1}, {.store = open_store(folder_ / "text"), .weight = 1}},
      options(1));
  const std::vector<std::string> meant = samples::golden_words();
  std::map<uint64_t, std::string> found;
  Batch batch;
  for (uint64_t step = 0; step < 4; ++step) {
    stream.build(step * 8, 0, batch);
    read(batch, found);
  }
  EXPECT_EQ(std::count_if(found.begin(), found.end(),
                          [&](const auto& each) {
                            return std::find(meant.begin(), meant.end(), each.second) !=
                                   meant.end();
                          }),
            8);
}

}  // namespace
}  // namespace onebit::batches
