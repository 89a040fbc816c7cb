#include "onebit/device/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "onebit/base/parallel_for.h"
#include "onebit/device/memory.h"

namespace onebit {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DeviceChoice, RanksOfAMachineShareItsProcessors) {
  EXPECT_EQ(open_device("cpu", {0, 1}, 0).threads(), available_threads());
  EXPECT_EQ(open_device("cpu", {1, 2}, 0).threads(), std::max(1, available_threads() / 2));
  EXPECT_EQ(open_device("cpu", {0, 10000}, 0).threads(), 1);
  EXPECT_EQ(open_device("cpu", {1, 2}, 3).threads(), 3);
}

TEST(CudaDeviceChoice, RanksTakeTheDevicesInTurn) {
  const int devices = memory::cuda_device_count();
  if (devices == 0) GTEST_SKIP() << "no CUDA device here";
  for (const char* device : {"auto", "cuda"}) {
    for (int rank = 0; rank < 2 * devices; ++rank) {
      EXPECT_EQ(open_device(device, {rank, 2 * devices}, 1).device().index, rank % devices);
    }
  }
}

// The emulated device then reports an older driver, as a real one may.
TEST(CudaDeviceChoice, AutoSaysWhyNoDeviceIsUsed) {
  setenv("ONEBIT_EMULATED_CUDA_DRIVER", "11080", 1);
  const std::string why = memory::why_no_cuda_device();
  const auto logged_by = [](int rank) {
    testing::internal::CaptureStderr();
    const Context context = open_device("auto", {rank, 2}, 1);
    EXPECT_EQ(context.device().is_cpu(), memory::cuda_device_count() == 0);
    return testing::internal::GetCapturedStderr();
  };
  if (why.empty()) {
    EXPECT_THAT(logged_by(0), Not(HasSubstr("using the CPU")));
  } else {
    EXPECT_THAT(logged_by(0), HasSubstr("using the CPU: " + why));
  }
  EXPECT_THAT(logged_by(1), Not(HasSubstr("using the CPU")));
  unsetenv("ONEBIT_EMULATED_CUDA_DRIVER");
}

}  // namespace
}  // namespace onebit
