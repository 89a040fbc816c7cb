#include "onebit/data/batches/step_dealer.h"

#include <gtest/gtest.h>

#include <vector>

namespace onebit::batches {
namespace {

TEST(StepParts, TouchEachOtherAndDifferByASample) {
  for (int64_t samples = 1; samples <= 40; ++samples) {
    for (int world = 1; world <= 7; ++world) {
      for (int64_t accumulation = 1; accumulation <= 5; ++accumulation) {
        const StepParts parts{samples, world, accumulation};
        int64_t end = 0;
        for (int64_t part = 0; part < parts.count(); ++part) {
          ASSERT_EQ(parts.begin(part), end);
          ASSERT_LE(parts.size(part), parts.largest());
          ASSERT_GE(parts.size(part), parts.largest() - 1);
          end += parts.size(part);
        }
        ASSERT_EQ(end, samples);
        int64_t of_micro_steps = 0;
        for (int64_t micro_step = 0; micro_step < accumulation; ++micro_step) {
          of_micro_steps += parts.size_of_micro_step(micro_step);
        }
        ASSERT_EQ(of_micro_steps, samples);
      }
    }
  }
}

TEST(StepParts, RanksDifferByASample) {
  const auto samples_of = [](const StepParts& parts) {
    std::vector<int64_t> found;
    for (int rank = 0; rank < parts.world_size; ++rank) {
      found.push_back(0);
      for (int64_t micro_step = 0; micro_step < parts.accumulation; ++micro_step) {
        const int64_t size = parts.size(parts.part_of(rank, micro_step));
        // A sum of losses is there before a micro-step without a sample.
        EXPECT_TRUE(micro_step > 0 || size > 0);
        found.back() += size;
      }
    }
    return found;
  };
  const std::vector<int64_t> shares = {11, 11, 10};
  for (const int64_t accumulation : {1, 2, 4, 11}) {
    EXPECT_EQ(samples_of({32, 3, accumulation}), shares) << accumulation;
  }
  EXPECT_EQ(samples_of({7, 6, 2}), (std::vector<int64_t>{2, 1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace onebit::batches
