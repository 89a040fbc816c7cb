#include "onebit/apps/squad/features.h"

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
      // A letter of its own, which tells the windows apart, and an end of up to seven tokens.
      questions.push_back(question(fmt::format("q{}", i), {{"here", 6}},
                                   std::string(1, static_cast<char>('a' + i)) +
                                       std::string(static_cast<size_t>(1 + i % 7), '?')));
    }
    data_ = dataset_from_json(file_of("It is here, and there, and here again.", questions), "f",
                              Use::kTrain);
  }

  Dataset data_;
};

// The windows of a batch, by the letters of their questions; each question has one window.
std::vector<uint32_t> windows_of(const batches::Batch& batch) {
  std::vector<uint32_t> windows;
  const int32_t first_letter = vocabulary()->find("a").value();
  for (int64_t i = 0; i < batch.sequences(); ++i) {
    const int32_t start = batch.sequence_starts[static_cast<size_t>(i)];
    windows.push_back(
        static_cast<uint32_t>(batch.tokens[static_cast<size_t>(start) + 1] - first_letter));
  }
  return windows;
}

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
      batches::Batch batch;
      for (int64_t step = 0; step < accumulation; ++step) {
        stream.build(16, step, batch);
        EXPECT_EQ(batch.sequences(), micro);
        const std::vector<uint32_t> own = windows_of(batch);
        EXPECT_EQ(batch.sequence_labels.size(), 2 * own.size());
        for (size_t i = 0; i < own.size(); ++i) {
          const Window& window = features.windows()[own[i]];
          EXPECT_EQ(batch.sequence_labels[i], window.start);
          EXPECT_EQ(batch.sequence_labels[own.size() + i], window.end);
        }
        windows.insert(windows.end(), own.begin(), own.end());
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
  batches::Batch batch;
  std::vector<uint32_t> first, second;
  for (uint64_t sample = 0; sample < 46; ++sample) {
    stream.build(sample, 0, batch);
    (sample < 23 ? first : second).push_back(windows_of(batch).at(0));
  }
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    std::vector<uint32_t> all(23);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(*epoch, all);
  }
}

TEST_F(SpanStreamTest, BatchesForPrediction) {
  const Features features = features_of(data_, {});
  const std::vector<uint32_t> which = {7, 3, 22};
  batches::Batch batch;
  build_batch(features, which, batch);
  EXPECT_EQ(windows_of(batch), which);
  for (size_t i = 0; i < which.size(); ++i) {
    EXPECT_EQ(batch.sequence_starts[i + 1] - batch.sequence_starts[i],
              lengths_of(features)[which[i]]);
  }
  EXPECT_TRUE(batch.sequence_labels.empty());
}

}  // namespace
}  // namespace onebit::squad
