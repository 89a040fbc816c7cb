#include "onebit/exchange/compress/compressed_all_reduce.h"

// The size of the compressed exchange's messages, by number of ranks.

#include <gtest/gtest.h>

#include "onebit/ground/base/error.h"

namespace onebit::compress {
namespace {

constexpr int64_t kDefaultBytes = int64_t{4} << 20;
constexpr int64_t kBertLarge = 336'226'108, kBertBase = 110'106'428, kBertMini = 11'171'642;
constexpr int64_t kBlockBytes = comm::kBlockElements * 4;

TEST(SizedBuckets, GiveEveryPeerAMessageThatIsWorthItsLatency) {
  for (const int world_size : {2, 3, 8, 16, 64}) {
    const comm::Buckets buckets = sized_buckets(kBertLarge, world_size, kDefaultBytes);
    EXPECT_GE(message_bytes(buckets, world_size), kMessageBytes) << world_size << " ranks";
    EXPECT_LE(message_bytes(buckets, world_size), kMessageBytes * 5 / 4) << world_size << " ranks";
    EXPECT_GE(buckets.count(), kMinBuckets) << world_size << " ranks";
  }
}

// The messages per step to each peer: two per bucket.
TEST(SizedBuckets, AreAsFewAsMessagesAreLarge) {
  EXPECT_EQ(sized_buckets(kBertLarge, 2, kDefaultBytes).count(), 321);
  EXPECT_EQ(sized_buckets(kBertLarge, 8, kDefaultBytes).count(), 83);
  EXPECT_EQ(sized_buckets(kBertLarge, 64, kDefaultBytes).count(), 11);
}

TEST(TwoLevelBuckets, HaveAPartForEveryRankOfANode) {
  for (const int64_t elements : {kBertLarge, kBertMini, int64_t{20 * comm::kBlockElements + 16}}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      const comm::Buckets buckets = two_level_buckets(elements, 2, ranks, kBlockBytes);
      EXPECT_EQ(buckets.bucket_bytes() % (ranks * kBlockBytes), 0);
      const Range last = buckets.range(buckets.count() - 1);
      EXPECT_GT(comm::chunk_of(last, ranks, ranks - 1).elements(), 0) << elements << " " << ranks;
    }
    EXPECT_EQ(two_level_buckets(elements, 2, 1, kDefaultBytes),
              sized_buckets(elements, 2, kDefaultBytes));
  }
  EXPECT_THROW(two_level_buckets(3 * comm::kBlockElements, 2, 4, kBlockBytes), Error);
}

// Overlap with the backward pass and memory take precedence over the size of messages.
TEST(SizedBuckets, AreNotFewerThanEight) {
  for (const int64_t elements : {kBertBase, kBertMini, int64_t{200'000}}) {
    for (const int world_size : {8, 64, 1000}) {
      const comm::Buckets buckets = sized_buckets(elements, world_size, kBlockBytes);
      EXPECT_GE(buckets.count(), kMinBuckets) << elements << " on " << world_size;
    }
  }
  EXPECT_EQ(sized_buckets(kBertBase, 64, kDefaultBytes).count(), 9);
}

TEST(SizedBuckets, AreNotSmallerThanRequested) {
  const int64_t asked = int64_t{64} << 20;
  for (const int world_size : {1, 2, 8, 64}) {
    EXPECT_GE(sized_buckets(kBertLarge, world_size, asked).bucket_bytes(), asked);
    // Less than eight buckets of it.
    EXPECT_EQ(sized_buckets(kBertMini, world_size, asked), comm::Buckets(kBertMini, asked));
  }
  EXPECT_EQ(sized_buckets(kBertLarge, 1, kDefaultBytes), comm::Buckets(kBertLarge, kDefaultBytes));
  EXPECT_EQ(sized_buckets(5000, 2, kBlockBytes), comm::Buckets(5000, kBlockBytes));
  EXPECT_THROW(sized_buckets(5000, 2, kBlockBytes - 1), Error);
}

}  // namespace
}  // namespace onebit::compress
