// One test body for every (device, dtype). Tests of a missing device are reported as skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "onebit/ground/base/philox.h"
#include "onebit/math/device/context.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/tensor/tensor.h"
#include "tests/reference/dropout.h"
#include "tests/reference/matrix.h"

namespace onebit::ops {

struct Backend {
  DeviceType device;
  DType dtype;
};

inline std::string name_of_backend(const testing::TestParamInfo<Backend>& info) {
  return std::string(name_of(info.param.device)) + "_" + std::string(name_of(info.param.dtype));
}

inline const std::vector<Backend>& all_backends() {
  static const std::vector<Backend> backends = {
      {DeviceType::kCpu, DType::kF32},   {DeviceType::kCpu, DType::kBF16},
      {DeviceType::kCpu, DType::kF16},   {DeviceType::kCuda, DType::kF32},
      {DeviceType::kCuda, DType::kBF16}, {DeviceType::kCuda, DType::kF16}};
  return backends;
}

// Chooses among many combinations: all, or with sanitizers every n-th (ONEBIT_TEST_PART,
// cmake/OnebitSanitizers.cmake). They check accesses, which few sizes show, and take long.
class Combinations {
 public:
  bool next() { return count_++ % part_ == 0; }

 private:
  static int part() {
    const char* text = std::getenv("ONEBIT_TEST_PART");
    return text == nullptr ? 1 : std::atoi(text);
  }

  int count_ = 0;
  int part_ = part();
};

// Whether oneDNN adds a product in the same order with any number of threads and rows and in every
// layout of the weight. With AVX2 it does not at the edges of some sizes.
inline bool products_keep_their_order() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw");
#else
  return true;
#endif
}

// Unit roundoff of a type.
inline double roundoff(DType dtype) {
  if (dtype == DType::kF32) return 0x1p-24;
  return dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
}

// The values rounded to the type.
inline reference::Matrix rounded(reference::Matrix x, DType dtype) {
  for (double& value : x.data) {
    const float single = static_cast<float>(value);
    value = dtype == DType::kF32    ? single
            : dtype == DType::kBF16 ? static_cast<float>(bf16(single))
                                    : static_cast<float>(f16(single));
  }
  return x;
}

class BackendTest : public testing::TestWithParam<Backend> {
 protected:
  static Context open(DeviceType device, int threads) {
    return device == DeviceType::kCpu ? Context::cpu(threads) : Context::cuda(0);
  }

  void SetUp() override {
    if (GetParam().device == DeviceType::kCuda && memory::cuda_device_count() == 0) {
      GTEST_SKIP() << "no CUDA device here: cuda_" << name_of(GetParam().dtype) << " was not run";
    }
    context_ = std::make_unique<Context>(open(GetParam().device, 2));
  }

  Context& context() { return *context_; }
  DType dtype() const { return GetParam().dtype; }
  double epsilon() const { return roundoff(dtype()); }

  // Reproducible numbers in about [-2, 2], rounded to the type.
  reference::Matrix random(int64_t rows, int64_t columns, uint64_t stream, double factor = 1) {
    return rounded(unrounded(rows, columns, stream, factor), dtype());
  }
  // The same, rounded to f32: for parameters.
  reference::Matrix random_f32(int64_t rows, int64_t columns, uint64_t stream, double factor = 1) {
    return rounded(unrounded(rows, columns, stream, factor), DType::kF32);
  }

  Tensor upload(const reference::Matrix& x, DType type, Shape shape) {
    Tensor host(Device{}, type, shape);
    for (size_t i = 0; i < x.data.size(); ++i) {
      const float value = static_cast<float>(x.data[i]);
      if (type == DType::kF32) host.data<float>()[i] = value;
      if (type == DType::kBF16) host.data<bf16>()[i] = bf16(value);
      if (type == DType::kF16) host.data<f16>()[i] = f16(value);
    }
    return to_device(host);
  }
  Tensor upload(const reference::Matrix& x) { return upload(x, dtype(), {x.rows, x.columns}); }
  // [1, columns] as f32 [columns], [rows, 1] as f32 [rows].
  Tensor upload_vector(const reference::Matrix& x) {
    return upload(x, DType::kF32, {x.rows * x.columns});
  }
  template <typename T>
  Tensor upload_values(const std::vector<T>& values, Shape shape) {
    Tensor host(Device{}, DTypeOf<T>::value, shape);
    std::memcpy(host.data<T>(), values.data(), values.size() * sizeof(T));
    return to_device(host);
  }
  Tensor to_device(Tensor& host) {
    Tensor there(context().device(), host.dtype(), host.shape());
    copy(there.view(), host.view());
    return there;
  }
  Tensor zeros(Shape shape) { return Tensor::zeros(context().device(), dtype(), shape); }
  Tensor zeros_f32(Shape shape) { return Tensor::zeros(context().device(), DType::kF32, shape); }

  kernels::Dropout dropout(const reference::DropoutRule& rule) {
    row_keys_.push_back(upload_values(rule.row_keys, {static_cast<int64_t>(rule.row_keys.size())}));
    return {.probability = static_cast<float>(rule.probability),
            .seed = rule.seed,
            .site = rule.site,
            .row_keys = row_keys_.back().view()};
  }
  static reference::DropoutRule rule(double probability, int64_t rows) {
    reference::DropoutRule result{probability, 0x1234567890ABCDEFull, 7, {}};
    for (int64_t row = 0; row < rows; ++row) {
      result.row_keys.push_back(0x9E3779B97F4A7C15ull * static_cast<uint64_t>(row + 1));
    }
    return result;
  }

  // |got - wanted| <= relative |wanted| + absolute, element by element.
  static void expect_near(const Tensor& got, const reference::Matrix& wanted, double relative,
                          double absolute, const std::string& what) {
    const Tensor host = to_cpu_f32(got.view());
    ASSERT_EQ(host.view().elements(), static_cast<int64_t>(wanted.data.size())) << what;
    for (size_t i = 0; i < wanted.data.size(); ++i) {
      const double value = host.data<float>()[i], expected = wanted.data[i];
      ASSERT_LE(std::abs(value - expected), relative * std::abs(expected) + absolute)
          << what << " at " << i << ": got " << value << ", wanted " << expected;
    }
  }

  static std::vector<char> bytes(const Tensor& x) {
    Tensor host(Device{}, x.dtype(), x.shape());
    copy(host.view(), x.view());
    const char* data = reinterpret_cast<const char*>(host.view().raw());
    return {data, data + host.view().size_bytes()};
  }

 private:
  static reference::Matrix unrounded(int64_t rows, int64_t columns, uint64_t stream,
                                     double factor) {
    reference::Matrix x(rows, columns);
    RandomSequence sequence(20, stream, 0);
    for (double& value : x.data) value = (sequence.uniform() * 4 - 2) * factor;
    return x;
  }

  std::unique_ptr<Context> context_;
  std::vector<Tensor> row_keys_;
};

}  // namespace onebit::ops

// Instantiates `suite` for every backend.
#define ONEBIT_ON_EVERY_BACKEND(suite) \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, testing::ValuesIn(all_backends()), name_of_backend)
