#include "onebit/apps/squad/span_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/squad/dataset_json.h"
#include "tests/squad/golden_run.h"

namespace onebit::squad {
namespace {

using dataset_json::file_of;
using dataset_json::question;

class SpanStreamTest : public testing::Test {
 protected:
  SpanStreamTest() {
    std::vector<Json> questions;
    for (int i = 0; i < 23; ++i) {
      questions.push_back(question(fmt::format("q{}", i), {{"here", 6}},
                                   std::string(static_cast<size_t>(1 + i % 7), '?')));
    }
    data_ = dataset_from_json(file_of("It is here, and there, and here again.", questions), "f",
                              Use::kTrain);
  }

  Dataset data_;
};

TEST_F(SpanStreamTest, AStepHoldsTheSameWindowsForAnyRanks) {
  const Features features = features_of(data_, {});
  const auto windows_of_step = [&](int world, int64_t micro, int64_t accumulation) {
    std::vector<uint32_t> windows;
    std::vector<int64_t> rows;
    for (int rank = 0; rank < world; ++rank) {
      const SpanStream stream(features, {.seed = 5,
                                         .world_size = world,
                                         .rank = rank,
                                         .micro_batch = micro,
                                         .accumulation = accumulation});
      SpanBatch batch;
      for (int64_t step = 0; step < accumulation; ++step) {
        stream.build(16, step, batch);
        EXPECT_EQ(batch.sequences(), micro);
        EXPECT_EQ(batch.spans.size(), 2 * batch.windows.size());
        for (size_t i = 0; i < batch.windows.size(); ++i) {
          const Window& window = features.windows()[batch.windows[i]];
          EXPECT_EQ(batch.spans[i], window.start);
          EXPECT_EQ(batch.spans[batch.windows.size() + i], window.end);
        }
        windows.insert(windows.end(), batch.windows.begin(), batch.windows.end());
        rows.push_back(batch.rows());
      }
    }
    // Work is even: no part has more than one longest question's tokens above another.
    EXPECT_LE(
        *std::max_element(rows.begin(), rows.end()) - *std::min_element(rows.begin(), rows.end()),
        7);
    std::sort(windows.begin(), windows.end());
    return windows;
  };
  const auto one = windows_of_step(1, 8, 1);
  EXPECT_EQ(one, windows_of_step(1, 2, 4));
  EXPECT_EQ(one, windows_of_step(2, 2, 2));
  EXPECT_EQ(one, windows_of_step(4, 2, 1));
}

TEST_F(SpanStreamTest, AnEpochSeesEveryWindowOnce) {
  const Features features = features_of(data_, {});
  const SpanStream stream(features, {.seed = 5, .micro_batch = 1});
  SpanBatch batch;
  std::vector<uint32_t> first, second;
  for (uint64_t sample = 0; sample < 46; ++sample) {
    stream.build(sample, 0, batch);
    (sample < 23 ? first : second).push_back(batch.windows.at(0));
  }
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    std::vector<uint32_t> all(23);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(*epoch, all);
  }
}

TEST_F(SpanStreamTest, ASweepSeesEveryWindowOnceOverAllRanks) {
  const Features features = features_of(data_, {});
  std::vector<uint32_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    const SpanSweep sweep(features, 4, 3, rank);
    SpanBatch batch;
    std::vector<uint32_t> own;
    for (int64_t i = 0; i < sweep.batches(); ++i) {
      sweep.build(i, batch);
      own.insert(own.end(), batch.windows.begin(), batch.windows.end());
    }
    EXPECT_EQ(sweep.sweep().items_of(rank), own);
    seen.insert(seen.end(), own.begin(), own.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<uint32_t> all(23);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(seen, all);
}

}  // namespace
}  // namespace onebit::squad
