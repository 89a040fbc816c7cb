#include "onebit/exchange/transport/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/ground/base/clock.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/memory.h"
#include "tests/base/message_of.h"

namespace onebit::transport {
namespace {

using testing::HasSubstr;

class NcclConnection : public testing::Test {
 protected:
  void SetUp() override {
    const int devices = memory::cuda_device_count();
    if (devices < 2 || !nccl_is_built() ||
        memory::describe_cuda_device(0).find("emulated") == std::string::npos) {
      GTEST_SKIP() << "about an NCCL that does not connect, which is emulated";
    }
    setenv("ONEBIT_EMULATED_NCCL_CONNECTS", "0", 1);
  }
  void TearDown() override {
    unsetenv("ONEBIT_EMULATED_NCCL_CONNECTS");
    unsetenv("ONEBIT_NCCL_CONNECT_SECONDS");
  }
  // The first message of a rank, which connects.
  static void send_first(comm::Communicator& world) {
    const Device device{DeviceType::kCuda, world.rank()};
    const auto nccl = make_nccl_communicator(world.duplicate(), device);
    const Buffer values(device, 64);
    nccl->broadcast({values.data(), 64}, 1);
  }
};

// A firewall between the nodes drops what NCCL sends, while MPI works.
TEST_F(NcclConnection, ThatIsNotMadeIsAnErrorWithAdvice) {
  setenv("ONEBIT_NCCL_CONNECT_SECONDS", "1", 1);
  const std::string error = message_of([] { comm::run_thread_world(2, send_first); });
  EXPECT_THAT(error, HasSubstr("NCCL_SOCKET_IFNAME"));
  EXPECT_THAT(error, HasSubstr("2 ranks"));
}

TEST_F(NcclConnection, RefusesSecondsThatAreNone) {
  setenv("ONEBIT_NCCL_CONNECT_SECONDS", "soon", 1);
  EXPECT_THAT(message_of([] { comm::run_thread_world(2, send_first); }),
              HasSubstr("ONEBIT_NCCL_CONNECT_SECONDS is \"soon\""));
}

// Also of a rank that fails after all have met: the others are then inside NCCL.
TEST_F(NcclConnection, EndsWhenAnotherRankFails) {
  const auto work = [](comm::Communicator& world) {
    if (world.rank() == 0) return send_first(world);
    const auto host = world.duplicate();
    std::vector<std::byte> id(128);
    host->broadcast(id, 0);
    host->barrier();
    fail("out of disk");
  };
  try {
    comm::run_thread_world(2, work);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "out of disk");
  }
}

}  // namespace
}  // namespace onebit::transport
