// Tests with one body for the CPU and a CUDA device, where the latter are skipped without one.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "onebit/math/device/context.h"
#include "onebit/math/device/memory.h"

namespace onebit {

class DeviceTest : public testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceType::kCuda && memory::cuda_device_count() == 0) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }
  static Context context() {
    return GetParam() == DeviceType::kCpu ? Context::cpu(1) : Context::cuda(0);
  }
};

inline std::string name_of_device(const testing::TestParamInfo<DeviceType>& tested) {
  return std::string(name_of(tested.param));
}

}  // namespace onebit
