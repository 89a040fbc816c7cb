#include "onebit/exchange/comm/bucket.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::comm {
namespace {

constexpr int64_t kBlockBytes = kBlockElements * 4;

TEST(Buckets, AreCountedFromTheEndOnBlocks) {
  const Buckets buckets(5 * kBlockElements + 100, 2 * kBlockBytes + 17);
  ASSERT_EQ(buckets.count(), 3);
  EXPECT_EQ(buckets.range(0), (Range{4 * kBlockElements, 5 * kBlockElements + 100}));
  EXPECT_EQ(buckets.range(1), (Range{2 * kBlockElements, 4 * kBlockElements}));
  EXPECT_EQ(buckets.range(2), (Range{0, 2 * kBlockElements}));
  EXPECT_EQ(buckets.max_elements(), 2 * kBlockElements);
}

TEST(Buckets, CoverEveryElementOnce) {
  for (const int64_t elements : {int64_t{1}, int64_t{2047}, int64_t{2048}, int64_t{2049},
                                 int64_t{100000}, int64_t{3000000000}}) {
    for (const int64_t bytes : {kBlockBytes, 7 * kBlockBytes, int64_t{1} << 24}) {
      const Buckets buckets(elements, bytes);
      int64_t end = elements, largest = 0;
      const int64_t step = std::max<int64_t>(1, buckets.count() / 1000);
      for (int64_t i = 0; i < buckets.count(); ++i) {
        const Range range = buckets.range(i);
        ASSERT_EQ(range.end, end);
        ASSERT_LT(range.begin, range.end);
        ASSERT_EQ(range.begin % kBlockElements, 0);
        if (i % step == 0) {
          ASSERT_EQ(buckets.bucket_of(range.begin), i);
          ASSERT_EQ(buckets.bucket_of(range.end - 1), i);
        }
        largest = std::max(largest, range.elements());
        end = range.begin;
      }
      EXPECT_EQ(end, 0);
      EXPECT_EQ(buckets.max_elements(), largest);
    }
  }
}

TEST(Buckets, ChunksCoverABucketInRankOrder) {
  for (int world_size = 1; world_size <= 9; ++world_size) {
    for (const Range bucket :
         {Range{0, 100}, Range{2048, 2048 * 6 + 5}, Range{4096, 4096 + 2048}}) {
      int64_t place = bucket.begin;
      for (int rank = 0; rank < world_size; ++rank) {
        const Range chunk = chunk_of(bucket, world_size, rank);
        EXPECT_EQ(chunk.begin, place);
        EXPECT_TRUE(chunk.begin % kBlockElements == 0 || chunk.elements() == 0);
        EXPECT_LE(blocks_in(chunk.elements()), blocks_in(bucket.elements()) / world_size + 1);
        place = chunk.end;
      }
      EXPECT_EQ(place, bucket.end);
    }
  }
}

TEST(Buckets, OwnedElementsAddUp) {
  const Buckets buckets(20 * kBlockElements + 1, 3 * kBlockBytes);
  int64_t total = 0;
  for (int rank = 0; rank < 4; ++rank) {
    total += buckets.owned_elements(4, rank);
    int64_t offset = 0;
    for (int64_t i = 0; i < buckets.count(); ++i) {
      EXPECT_EQ(buckets.owned_offset(i, 4, rank), offset);
      offset += chunk_of(buckets.range(i), 4, rank).elements();
    }
  }
  EXPECT_EQ(total, buckets.elements());
}

TEST(Buckets, RefuseWhatCannotBeCut) {
  EXPECT_THROW(Buckets(0, kBlockBytes), Error);
  EXPECT_THROW(Buckets(10, kBlockBytes - 1), Error);
}

}  // namespace
}  // namespace onebit::comm
