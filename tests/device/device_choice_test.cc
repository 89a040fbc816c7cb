#include "onebit/math/device/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/device/memory.h"
#include "tests/base/message_of.h"

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

// Sets the compute capabilities of the emulated devices for its lifetime. Others keep theirs.
class Capabilities {
 public:
  explicit Capabilities(const char* text) { setenv("ONEBIT_EMULATED_CUDA_CAPABILITY", text, 1); }
  ~Capabilities() { unsetenv("ONEBIT_EMULATED_CUDA_CAPABILITY"); }
};

bool is_emulated() {
  return memory::cuda_device_count() > 0 &&
         memory::describe_cuda_device(0).find("emulated") != std::string::npos;
}

// A T4 and a V100 are devices, but not of a kind that kernels are compiled for.
TEST(CudaDeviceChoice, ADeviceWithoutCodeIsLeftToOthers) {
  if (!is_emulated()) GTEST_SKIP() << "about devices of other kinds";
  const Capabilities old("7.5");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(open_device("auto", {0, 2}, 1).device().is_cpu());
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("using the CPU"));
  EXPECT_THAT(logged, HasSubstr("compute capability 7.5, and onebit's kernels need 8.0"));
  EXPECT_EQ(logged.find("using the CPU"), logged.rfind("using the CPU"));
  EXPECT_THAT(logged, Not(HasSubstr("gpu-check")));
  const std::string error = message_of([] { open_device("cuda", {0, 2}, 1); });
  EXPECT_THAT(error, HasSubstr("compute capability 7.5"));
  EXPECT_THAT(error, HasSubstr("--device cpu"));
}

TEST(CudaDeviceChoice, RanksTakeTheDevicesWithCode) {
  if (!is_emulated() || memory::cuda_device_count() != 2) {
    GTEST_SKIP() << "about two emulated devices";
  }
  const Capabilities mixed("7.5,9.0");
  for (const char* device : {"auto", "cuda"}) {
    for (int rank = 0; rank < 2; ++rank) {
      testing::internal::CaptureStderr();
      EXPECT_EQ(open_device(device, {rank, 2}, 1).device(), (Device{DeviceType::kCuda, 1}));
      const std::string logged = testing::internal::GetCapturedStderr();
      EXPECT_EQ(logged.find("not used: emulated") != std::string::npos, rank == 0) << logged;
    }
  }
}

}  // namespace
}  // namespace onebit
