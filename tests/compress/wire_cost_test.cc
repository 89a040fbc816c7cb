// The traffic of compression, counted at the transport: at most 1/15.5 of a 16-bit ring all-reduce,
// with one scale per sub-block and one extra number per block, in the mean over ranks.
#include <gtest/gtest.h>

#include "onebit/exchange/comm/dense_exchange.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "tests/compress/run_steps.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::compress {
namespace {

using comm::Communicator;

constexpr int64_t kBertMini = 11'171'642;  // parameters, with the pre-training heads
constexpr int64_t kBucketBytes = int64_t{4} << 20;

void expect_cheap(Communicator& world, const comm::Buckets& buckets) {
  Context context = Context::cpu(1);
  trials::Exchange all_reduce(world, buckets, {});
  std::vector<float> values(static_cast<size_t>(buckets.elements()), 0.25f), extras;
  extras.resize(static_cast<size_t>(blocks_in(buckets.elements())), 1.0f);
  std::vector<uint8_t> still;
  const int64_t before = world.wire_bytes_sent();
  trials::exchange(context, all_reduce, values, still, extras);
  int64_t sent = world.wire_bytes_sent() - before;
  EXPECT_GT(sent, 0);
  const double dense =
      static_cast<double>(comm::ring_bytes_16bit(buckets.elements(), world.world_size()));
  // A rank that owns a block more than others sends a little more than the mean.
  EXPECT_GE(dense / static_cast<double>(sent), 15.4) << buckets.bucket_bytes();
  world.all_reduce(std::span(&sent, 1), comm::Reduction::kSum);
  const double mean = static_cast<double>(sent) / world.world_size();
  EXPECT_GE(dense / mean, 15.5) << buckets.bucket_bytes();
  ::testing::Test::RecordProperty("dense_over_sent", fmt::format("{:.3f}", dense / mean));
}

// Checks buckets of the requested size, and those that the optimizers choose.
void expect_cheap(Communicator& world) {
  expect_cheap(world, comm::Buckets(kBertMini, kBucketBytes));
  expect_cheap(world, sized_buckets(kBertMini, world.world_size(), kBucketBytes));
}

TEST(WireCost, OfTwoRanks) {
  comm::run_thread_world(2, [](Communicator& world) { expect_cheap(world); });
}
TEST(WireCost, OfFourRanks) {
  comm::run_thread_world(4, [](Communicator& world) { expect_cheap(world); });
}

// The mean bytes per rank and step, from the layout alone, for more ranks than threads allow.
double mean_bytes_sent(const comm::Buckets& buckets, int world_size) {
  int64_t all_bytes = 0;
  for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
    for (int rank = 0; rank < world_size; ++rank) {
      const Range chunk = comm::chunk_of(buckets.range(bucket), world_size, rank);
      // From every other rank to the owner, and from the owner to every other rank.
      all_bytes += 2 * (world_size - 1) * chunk_bytes(chunk.elements());
    }
  }
  return static_cast<double>(all_bytes) / world_size;
}

TEST(WireCost, DoesNotGrowWithTheWorldOrAnOddSize) {
  constexpr int64_t kMi = int64_t{1} << 20;
  for (const int world_size : {2, 4, 8, 64}) {
    for (const int64_t elements : {kMi, kMi + 1, kMi + 2047, kBertMini, 335'174'458 + kMi}) {
      const double dense = 4.0 * static_cast<double>(elements) * (world_size - 1) / world_size;
      const comm::Buckets even(elements, kBucketBytes);
      const comm::Buckets sized = sized_buckets(elements, world_size, kBucketBytes);
      for (const comm::Buckets* buckets : {&even, &sized}) {
        EXPECT_GE(dense / mean_bytes_sent(*buckets, world_size), 15.5)
            << elements << " elements, " << world_size << " ranks, " << buckets->count()
            << " buckets";
      }
    }
  }
}

// With many ranks buckets are enlarged, which avoids small messages.
TEST(WireCost, SizedBucketsMakeFewerMessages) {
  for (const int world_size : {8, 64}) {
    const comm::Buckets even(335'174'458, kBucketBytes);
    const comm::Buckets sized = sized_buckets(even.elements(), world_size, kBucketBytes);
    EXPECT_LT(2 * sized.count(), even.count());
    EXPECT_GE(message_bytes(sized, world_size), kMessageBytes);
    EXPECT_LE(mean_bytes_sent(sized, world_size), mean_bytes_sent(even, world_size));
  }
}

TEST(MpiWireCost, OfProcesses) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  expect_cheap(*onebit::mpi_tests::mpi_world());
}

}  // namespace
}  // namespace onebit::compress
