// The wire of a planned cluster, against sums made by hand.
#include "onebit/program/plan/planned_costs.h"

#include <gtest/gtest.h>

namespace onebit::plan {
namespace {

PlannedCluster cluster_of(int hosts, int ranks_per_host) {
  return {.hosts = hosts,
          .ranks_per_host = ranks_per_host,
          .host_parts = ranks_per_host,
          .bandwidth = 12.5e6,
          .latency = 1e-3,
          .copy_bytes_per_second = 16e9};
}

TEST(BucketWire, TwoHostsSendHalfOfABucketTwice) {
  // All-to-all sends a half to the other, all-gather a half again, which is together the bucket.
  EXPECT_NEAR(bucket_wire_seconds(cluster_of(2, 1), 2e6), 2e6 / (0.95 * 12.5e6), 1e-12);
}

TEST(BucketWire, RanksOfAHostShareItsLink) {
  // 8 ranks, 4 a host: each of the 4 sends an eighth to each of the 4 elsewhere, twice.
  EXPECT_NEAR(bucket_wire_seconds(cluster_of(2, 4), 8e6), 2 * 4 * 4 * 1e6 / (0.95 * 12.5e6), 1e-9);
}

TEST(BucketWire, TendsToTwiceTheBucketOnManyHosts) {
  PlannedCluster cluster = cluster_of(512, 1);
  cluster.latency = 0;
  EXPECT_NEAR(bucket_wire_seconds(cluster, 512e6), 2 * 511e6 / (0.95 * 12.5e6), 1e-6);
}

TEST(BucketWire, InOneHostIsCopiedInMemory) {
  // Two ranks send a half twice each. A byte is read and written on its way in and on its way out.
  EXPECT_NEAR(bucket_wire_seconds(cluster_of(1, 2), 400e6), 2 * 2 * 200e6 * 4 / 16e9, 1e-9);
}

TEST(BucketWire, SmallBucketsWaitForLatencyOrMessages) {
  EXPECT_DOUBLE_EQ(bucket_wire_seconds(cluster_of(2, 1), 100), 1e-3);
  PlannedCluster fast = cluster_of(1024, 1);
  fast.bandwidth = 12.5e9;
  EXPECT_DOUBLE_EQ(bucket_wire_seconds(fast, 1024 * 100), 2 * 1023 * kMessageSeconds);
}

TEST(BucketWire, OneRankSendsNothing) {
  EXPECT_EQ(bucket_wire_seconds(cluster_of(1, 1), 1e9), 0);
}

TEST(BucketSent, IsWhatLeavesTheHost) {
  // An eighth of the bucket to each of the 4 ranks elsewhere, twice.
  EXPECT_DOUBLE_EQ(bucket_sent_bytes(cluster_of(2, 4), 8e6), 2 * 4 * 1e6);
  EXPECT_EQ(bucket_sent_bytes(cluster_of(1, 2), 8e6), 0);
}

TEST(AgreementSeconds, GrowWithTheLogarithm) {
  EXPECT_EQ(agreement_seconds(cluster_of(1, 4)), 0);
  EXPECT_DOUBLE_EQ(agreement_seconds(cluster_of(2, 1)), 1e-3);
  EXPECT_DOUBLE_EQ(agreement_seconds(cluster_of(3, 2)), 3e-3);
  EXPECT_DOUBLE_EQ(agreement_seconds(cluster_of(1024, 1)), 10e-3);
}

}  // namespace
}  // namespace onebit::plan
