// What compression saves, counted at the transport: at most 1/15.5 of a 16-bit ring all-reduce,
// with a scale a sub-block and one extra number a block.
#include <gtest/gtest.h>

#include "onebit/comm/dense_exchange.h"
#include "onebit/comm/thread_communicator.h"
#include "tests/comm/mpi_environment.h"
#include "tests/compress/run_steps.h"

namespace onebit::compress {
namespace {

using comm::Communicator;

constexpr int64_t kBertMini = 11'171'642;  // parameters, with the pre-training heads
constexpr int64_t kBucketBytes = int64_t{4} << 20;

void expect_cheap(Communicator& world) {
  const testing::Plan plan{
      .elements = kBertMini, .bucket_bytes = kBucketBytes, .steps = 1, .options = {}};
  Context context = Context::cpu(1);
  CompressedAllReduce all_reduce(world, comm::Buckets(plan.elements, plan.bucket_bytes),
                                 plan.options);
  std::vector<float> values(static_cast<size_t>(plan.elements), 0.25f), extras;
  extras.resize(static_cast<size_t>(blocks_in(plan.elements)), 1.0f);
  std::vector<uint8_t> still;
  const int64_t before = world.wire_bytes_sent();
  testing::exchange(context, all_reduce, values, still, extras);
  const int64_t sent = world.wire_bytes_sent() - before;
  const double dense =
      static_cast<double>(comm::ring_bytes_16bit(plan.elements, world.world_size()));
  EXPECT_GT(sent, 0);
  EXPECT_GE(dense / static_cast<double>(sent), 15.5);
  ::testing::Test::RecordProperty("dense_over_sent", fmt::format("{:.3f}", dense / sent));
}

TEST(WireCost, OfTwoRanks) {
  comm::run_thread_world(2, expect_cheap);
}
TEST(WireCost, OfFourRanks) {
  comm::run_thread_world(4, expect_cheap);
}

// What the mean rank sends for one step, from the cut alone: worlds too large for threads here.
double mean_bytes_sent(int64_t elements, int world_size) {
  const comm::Buckets buckets(elements, kBucketBytes);
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
  for (const int world_size : {2, 4, 64}) {
    for (const int64_t elements : {kMi, kMi + 1, kMi + 2047, kBertMini, 335'174'458 + kMi}) {
      const double dense = 4.0 * static_cast<double>(elements) * (world_size - 1) / world_size;
      EXPECT_GE(dense / mean_bytes_sent(elements, world_size), 15.5)
          << elements << " elements, " << world_size << " ranks";
    }
  }
}

TEST(MpiWireCost, OfProcesses) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  expect_cheap(*onebit::testing::mpi_world());
}

}  // namespace
}  // namespace onebit::compress
