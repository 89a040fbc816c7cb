#include <gtest/gtest.h>

#include "onebit/comm/device_communicator.h"
#include "onebit/comm/mpi_communicator.h"
#include "tests/base/message_of.h"
#include "tests/comm/mpi_environment.h"

namespace onebit::comm {
namespace {

// An MPI without CUDA would read a device pointer as one of the host and crash.
TEST(DeviceTransport, PointersGoStraightToMpiOnlyIfItTakesThem) {
  EXPECT_EQ(mpi_transport(false, false), DeviceTransport::kStaged);
  EXPECT_EQ(mpi_transport(false, true), DeviceTransport::kStaged);
  EXPECT_EQ(mpi_transport(true, true), DeviceTransport::kCudaAware);
  const std::string error = message_of([] { mpi_transport(true, false); });
  EXPECT_NE(error.find("optimizer.params.cuda_aware"), std::string::npos) << error;
}

TEST(MpiDeviceTransport, RanksOfOneJobHearTheSameOfMpi) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  const int64_t mine = mpi_takes_device_memory() ? 1 : 0;
  int64_t least = mine;
  testing::mpi_world()->all_reduce(std::span(&least, 1), Reduction::kMin);
  EXPECT_EQ(least, mine);
}

}  // namespace
}  // namespace onebit::comm
