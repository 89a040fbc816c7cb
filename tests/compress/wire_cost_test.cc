// What compression saves, counted at the transport: at most 1/15.5 of a 16-bit ring all-reduce,
// with scales and one extra number a block.
#include <gtest/gtest.h>

#include "onebit/comm/dense_exchange.h"
#include "onebit/comm/thread_communicator.h"
#include "tests/comm/mpi_environment.h"
#include "tests/compress/run_steps.h"

namespace onebit::compress {
namespace {

using comm::Communicator;

constexpr int64_t kBertMini = 11'171'642;  // parameters, with the pre-training heads

void expect_cheap(Communicator& world) {
  const testing::Plan plan{.elements = kBertMini,
                           .bucket_bytes = int64_t{16} << 20,
                           .steps = 1,
                           .options = {.extra = ExtraType::kBF16}};
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

TEST(MpiWireCost, OfProcesses) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  expect_cheap(*onebit::testing::mpi_world());
}

}  // namespace
}  // namespace onebit::compress
