#include "onebit/data/batches/step_dealer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "onebit/ground/base/error.h"
#include "tests/base/message_of.h"

namespace onebit::batches {
namespace {

std::vector<int32_t> lengths(size_t count) {
  std::vector<int32_t> all;
  for (size_t i = 0; i < count; ++i) all.push_back(static_cast<int32_t>(3 + i % 7));
  return all;
}

TEST(StepDealer, AStepHoldsTheSameSamplesForAnyRanks) {
  const std::vector<int32_t> all = lengths(23);
  const auto step = [&](int world, int64_t micro, int64_t accumulation) {
    std::vector<std::pair<uint64_t, uint32_t>> samples;
    std::vector<int64_t> tokens;
    for (int rank = 0; rank < world; ++rank) {
      const StepDealer dealer(all, {5, world, rank, micro, accumulation}, "x");
      for (int64_t micro_step = 0; micro_step < accumulation; ++micro_step) {
        tokens.push_back(0);
        for (const DealtSample& dealt : dealer.deal(16, micro_step)) {
          samples.emplace_back(dealt.sample, dealt.item);
          tokens.back() += all[dealt.item];
        }
      }
    }
    // No part has more than the longest item's tokens above another.
    const auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
    EXPECT_LE(*most - *least, 9);
    std::sort(samples.begin(), samples.end());
    return samples;
  };
  const auto one = step(1, 8, 1);
  EXPECT_EQ(one.front().first, 16u);
  EXPECT_EQ(one.back().first, 23u);  // over the end of the first epoch
  EXPECT_EQ(one, step(1, 2, 4));
  EXPECT_EQ(one, step(2, 2, 2));
  EXPECT_EQ(one, step(4, 2, 1));
}

// Ten samples over three ranks, in micro-batches of at most four or two.
TEST(StepDealer, UnequalPartsHoldTheSameSamples) {
  const std::vector<int32_t> all = lengths(23);
  std::vector<std::pair<uint64_t, uint32_t>> one;
  for (const DealtSample& dealt : StepDealer(all, {5, 1, 0, 10, 1}, "x").deal(20, 0)) {
    one.emplace_back(dealt.sample, dealt.item);
  }
  std::sort(one.begin(), one.end());
  for (const int64_t accumulation : {1, 2, 10}) {
    SCOPED_TRACE(accumulation);
    const int64_t micro = accumulation == 1 ? 4 : accumulation == 2 ? 2 : 1;
    std::vector<std::pair<uint64_t, uint32_t>> samples;
    std::vector<size_t> counts;
    for (int rank = 0; rank < 3; ++rank) {
      const StepDealer dealer(all, {5, 3, rank, micro, accumulation, 10}, "x");
      EXPECT_EQ(dealer.samples_per_step(), 10u);
      counts.push_back(0);
      for (int64_t micro_step = 0; micro_step < accumulation; ++micro_step) {
        const auto dealt = dealer.deal(20, micro_step);
        EXPECT_LE(dealt.size(), static_cast<size_t>(micro));
        for (const DealtSample& sample : dealt) samples.emplace_back(sample.sample, sample.item);
        counts.back() += dealt.size();
      }
      EXPECT_FALSE(dealer.deal(20, 0).empty());
    }
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(samples, one);
    EXPECT_EQ(counts, (std::vector<size_t>{4, 3, 3}));
  }
}

TEST(StepDealer, AnEpochSeesEveryItemOnceInAnotherOrder) {
  const StepDealer dealer(lengths(23), {.seed = 5}, "x");
  std::vector<uint32_t> first, second;
  for (uint64_t sample = 0; sample < 46; ++sample) {
    (sample < 23 ? first : second).push_back(dealer.deal(sample, 0).at(0).item);
  }
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    std::vector<uint32_t> all(23);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(*epoch, all);
  }
}

TEST(StepDealer, RefusesMoreRanksThanItems) {
  const std::string message =
      message_of([] { StepDealer(lengths(2), {.world_size = 3}, "train.tsv: 2 examples"); });
  EXPECT_NE(message.find("train.tsv: 2 examples are too few for 3 ranks"), std::string::npos);
}

}  // namespace
}  // namespace onebit::batches
