// Runs operations on the CPU or a CUDA device with arguments in host memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onebit/math/device/context.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::ops {

// Copies host views to the context's device. On a CPU it uses the views themselves.
class Mirror {
 public:
  explicit Mirror(Context& context) : device_(context.device()) {}

  View operator()(const View& host) {
    if (device_.is_cpu() || host.empty()) return host;
    copies_.emplace_back(host, upload(host));
    return copies_.back().second.view();
  }
  ConstView operator()(const ConstView& host) {
    if (device_.is_cpu() || host.empty()) return host;
    read_only_.push_back(upload(host));
    return read_only_.back().view();
  }
  // Copies the operation's results back to the host.
  void bring_back() {
    for (auto& [host, copied] : copies_) copy(host, copied.view());
  }

 private:
  Tensor upload(const ConstView& host) const {
    Tensor there(device_, host.dtype(), host.shape());
    copy(there.view(), host);
    return there;
  }

  Device device_;
  std::vector<std::pair<View, Tensor>> copies_;
  std::vector<Tensor> read_only_;
};

// A test body for every device, with its arguments in host memory.
class MirrorTest : public ::testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceType::kCuda && memory::cuda_device_count() == 0) {
      GTEST_SKIP() << "no CUDA device here: cuda was not run";
    }
    context_ = std::make_unique<Context>(GetParam() == DeviceType::kCpu ? Context::cpu(2)
                                                                        : Context::cuda(0));
  }
  Context& context() { return *context_; }

 private:
  std::unique_ptr<Context> context_;
};

inline std::string name_of_device(const ::testing::TestParamInfo<DeviceType>& info) {
  return std::string(name_of(info.param));
}

}  // namespace onebit::ops

// Instantiates `suite` for every device.
#define ONEBIT_ON_EVERY_DEVICE(suite)                                                             \
  INSTANTIATE_TEST_SUITE_P(                                                                       \
      Devices, suite, ::testing::Values(::onebit::DeviceType::kCpu, ::onebit::DeviceType::kCuda), \
      ::onebit::ops::name_of_device)
