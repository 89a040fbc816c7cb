#include "onebit/math/kernels/device_switch.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/error.h"

namespace onebit {
namespace {

ONEBIT_DEVICE_OP(int, sum_of_two, int, int);
ONEBIT_DEVICE_OP(bool, takes_nothing);

namespace cpu {
int sum_of_two(Context&, int a, int b) {
  return a + b;
}
bool takes_nothing(Context&) {
  return true;
}
}  // namespace cpu

namespace cuda {
[[maybe_unused]] int sum_of_two(Context&, int, int) {
  return 0;
}
[[maybe_unused]] bool takes_nothing(Context&) {
  return false;
}
}  // namespace cuda

TEST(DeviceSwitch, CallsTheHalfOfTheDevice) {
  Context context = Context::cpu(1);
  EXPECT_EQ(on_device::sum_of_two(context, 2, 3), 5);
  EXPECT_TRUE(on_device::takes_nothing(context));
}

TEST(DeviceSwitch, WithoutCudaNamesTheOperation) {
  try {
    kernels::fail_without_cuda("layer_norm");
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string_view message = error.what();
    EXPECT_EQ(message.find("layer_norm: "), 0) << message;
    EXPECT_NE(message.find("-DONEBIT_CUDA=ON"), message.npos) << message;
  }
}

}  // namespace
}  // namespace onebit
