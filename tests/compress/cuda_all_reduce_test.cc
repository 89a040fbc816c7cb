// Ranks on a CUDA device end with the bits of ranks on CPUs: averages, residuals, extras.
#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/math/device/memory.h"
#include "tests/compress/run_steps.h"

namespace onebit::compress {
namespace {

using trials::Outcome;
using trials::Plan;

// Two ranks that share one device, through host memory.
TEST(CudaAllReduce, GivesTheBitsOfTheCpu) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  for (const bool still : {false, true}) {
    const Plan plan{
        .elements = 10 * kBlockElements + 528, .still = still, .extras = true, .options = {}};
    comm::run_thread_world(2, [&](comm::Communicator& world) {
      const Outcome expected = run_steps(world, plan);
      const auto on_device = transport::make_device_communicator(
          world.duplicate(), {DeviceType::kCuda, 0}, transport::DeviceTransport::kStaged);
      const Outcome got = run_steps(*on_device, plan);
      EXPECT_EQ(got.averages, expected.averages);
      EXPECT_EQ(got.worker, expected.worker);
      EXPECT_EQ(got.server, expected.server);
      EXPECT_EQ(got.extras, expected.extras);
      EXPECT_EQ(got.wire_bytes, expected.wire_bytes);
      EXPECT_EQ(got.norms.worker_residual, expected.norms.worker_residual);
    });
  }
}

// The same with a device for each rank and NCCL between them.
TEST(CudaAllReduce, GivesTheBitsOfTheCpuThroughNccl) {
  if (memory::cuda_device_count() < 2 || !transport::nccl_is_built()) {
    GTEST_SKIP() << "needs two CUDA devices and NCCL";
  }
  const Plan plan{
      .elements = 10 * kBlockElements + 528, .still = true, .extras = true, .options = {}};
  comm::run_thread_world(2, [&](comm::Communicator& world) {
    const Outcome expected = run_steps(world, plan);
    const auto on_devices = transport::make_device_communicator(
        world.duplicate(), {DeviceType::kCuda, world.rank()}, transport::DeviceTransport::kNccl);
    const Outcome got = run_steps(*on_devices, plan);
    EXPECT_EQ(got.averages, expected.averages);
    EXPECT_EQ(got.worker, expected.worker);
    EXPECT_EQ(got.server, expected.server);
    EXPECT_EQ(got.extras, expected.extras);
  });
}

}  // namespace
}  // namespace onebit::compress
