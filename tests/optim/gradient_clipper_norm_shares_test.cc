#include "onebit/exchange/optim/gradient_clipper.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace onebit::optim {
namespace {

// Two buckets of two blocks, of which bucket 0 is at the end of the buffer.
comm::Buckets two_buckets() {
  return {4 * comm::kBlockElements, 2 * comm::kBlockElements * 4};
}

using Squares = std::array<double, 2>;

NormShares seen(const Squares& squares, int64_t steps) {
  NormShares shares(two_buckets());
  for (int64_t step = 0; step < steps; ++step) shares.follow(squares);
  return shares;
}

TEST(NormShares, AreKnownAfterAFewSteps) {
  NormShares shares(two_buckets());
  for (int64_t step = 0; step < NormShares::kFewestSteps; ++step) {
    EXPECT_FALSE(shares.known());
    EXPECT_EQ(shares.steps_missing(), NormShares::kFewestSteps - step);
    shares.follow(Squares{0, 0});  // contains no information
    shares.follow(Squares{1, 3});
  }
  EXPECT_TRUE(shares.known());
  EXPECT_EQ(shares.steps_missing(), 0);
  EXPECT_DOUBLE_EQ(shares.limit(0, 2), 2 * std::sqrt(0.25));
  EXPECT_DOUBLE_EQ(shares.limit(1, 2), 2 * std::sqrt(0.75));
}

TEST(NormShares, AreTheMeanOfTheFirstStepsThenFollow) {
  NormShares shares(two_buckets());
  for (int step = 0; step < 20; ++step)
    shares.follow(step % 2 == 0 ? Squares{1, 0} : Squares{1, 1});
  EXPECT_NEAR(shares.limit(0, 1), std::sqrt(0.75), 1e-12);
  for (int step = 0; step < 400; ++step) shares.follow(Squares{1, 9});
  EXPECT_NEAR(shares.limit(0, 1), std::sqrt(0.1), 1e-3);
  // One step is worth a fiftieth, however large it is.
  shares.follow(Squares{1e12, 1});
  EXPECT_NEAR(shares.limit(0, 1), std::sqrt(0.1 + 0.02 * 0.9), 1e-3);
}

TEST(NormShares, LeaveABucketWithoutGradientRoomForOne) {
  const NormShares shares = seen({0, 5}, 30);
  EXPECT_DOUBLE_EQ(shares.limit(0, 3), 3 * std::sqrt(0.01 * 0.5));
  // All limits together let through no more than the threshold and the floor.
  const double whole = std::hypot(shares.limit(0, 3), shares.limit(1, 3));
  EXPECT_LE(whole, 3 * 1.005);
}

TEST(NormShares, AreKeptExactlyButForOtherBuckets) {
  NormShares shares = seen({1, 2}, 7);
  for (int step = 0; step < 10; ++step) shares.follow(Squares{0.1 * step, 1.0 / 3});
  const Json state = Json::parse(shares.save().dump());
  NormShares resumed(two_buckets());
  resumed.load(state);
  for (const int64_t bucket : {0, 1}) EXPECT_EQ(resumed.limit(bucket, 1), shares.limit(bucket, 1));
  resumed.follow(Squares{1, 1});
  shares.follow(Squares{1, 1});
  EXPECT_EQ(resumed.save(), shares.save());

  NormShares other(comm::Buckets(4 * comm::kBlockElements, comm::kBlockElements * 4));
  other.load(state);
  EXPECT_FALSE(other.known());
  resumed.load(Json());
  EXPECT_FALSE(resumed.known());
}

}  // namespace
}  // namespace onebit::optim
