#include "onebit/data/batches/step_dealer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "onebit/ground/base/error.h"

namespace onebit::batches {
namespace {

TEST(LengthSweep, EveryItemOnceOverAllRanksLongestFirst) {
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < 23; ++i) lengths.push_back(3 + i * 5 % 7);
  std::vector<uint32_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    const LengthSweep sweep(lengths, 4, 3, rank);
    std::vector<uint32_t> own;
    for (int64_t i = 0; i < sweep.batches(); ++i) {
      const auto items = sweep.items(i);
      EXPECT_LE(items.size(), 4u);
      own.insert(own.end(), items.begin(), items.end());
    }
    EXPECT_EQ(sweep.items_of(rank), own);
    for (size_t i = 1; i < own.size(); ++i) EXPECT_GE(lengths[own[i - 1]], lengths[own[i]]);
    seen.insert(seen.end(), own.begin(), own.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<uint32_t> all(23);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(seen, all);
}

TEST(LengthSweep, NothingToPredict) {
  EXPECT_EQ(LengthSweep({}, 4, 1, 0).batches(), 0);
  EXPECT_THROW(LengthSweep({}, 0, 1, 0), Error);
}

}  // namespace
}  // namespace onebit::batches
