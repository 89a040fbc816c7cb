#include "onebit/compress/residual_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "onebit/base/error.h"
#include "tests/compress/test_values.h"

namespace onebit::compress {
namespace {

using testing::values_of;

TEST(ResidualState, TheAverageOverRanksSurvivesAnotherNumberOfRanks) {
  const int64_t elements = 5000;
  for (const int old_ranks : {1, 2, 3, 8}) {
    std::vector<float> merged(static_cast<size_t>(elements));
    std::vector<double> mean(static_cast<size_t>(elements)), sizes(mean);
    for (int rank = 0; rank < old_ranks; ++rank) {
      const std::vector<float> residual = values_of(rank, 0, elements);
      merge_worker_residual(residual, old_ranks, merged);
      for (size_t i = 0; i < mean.size(); ++i) {
        mean[i] += static_cast<double>(residual[i]) / old_ranks;
        sizes[i] += std::abs(static_cast<double>(residual[i])) / old_ranks;
      }
    }
    // Every new rank starts with `merged`, so their average is `merged` itself.
    for (size_t i = 0; i < mean.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(merged[i]), mean[i], (old_ranks + 2) * 0x1p-24 * sizes[i]);
    }
  }
}

TEST(ResidualState, ServerResidualsAreCutAgainWithoutLoss) {
  const int64_t elements = 70001;
  const comm::Buckets before(elements, 5 * comm::kBlockElements * 4);
  const comm::Buckets after(elements, 7 * comm::kBlockElements * 4);
  std::vector<float> original = values_of(0, 0, elements), full(original.size());
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<float> owned(static_cast<size_t>(before.owned_elements(4, rank)));
    take_server_residual(before, 4, rank, original, owned);
    spread_server_residual(before, 4, rank, owned, full);
  }
  EXPECT_EQ(full, original);
  std::vector<float> again(original.size());
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> owned(static_cast<size_t>(after.owned_elements(3, rank)));
    take_server_residual(after, 3, rank, full, owned);
    spread_server_residual(after, 3, rank, owned, again);
  }
  EXPECT_EQ(again, original);
}

TEST(ResidualState, RefusesAnotherModelsResiduals) {
  std::vector<float> residual(10), merged(11);
  EXPECT_THROW(merge_worker_residual(residual, 2, merged), Error);
  const comm::Buckets buckets(5000, comm::kBlockElements * 4);
  std::vector<float> full(5000), owned(17);
  EXPECT_THROW(take_server_residual(buckets, 2, 0, full, owned), Error);
  EXPECT_THROW(spread_server_residual(buckets, 2, 0, owned, full), Error);
}

}  // namespace
}  // namespace onebit::compress
