// The errors of matrix products.
#pragma once

#include <string>

#include "tests/ops/backend_test.h"

namespace onebit::ops {

class LinearFixture : public BackendTest {
 protected:
  bool on_cuda() const { return GetParam().device == DeviceType::kCuda; }
  double error_of_sums(const reference::Matrix& a, const reference::Matrix& b) const {
    return static_cast<double>(a.columns + 2) * 0x1p-24 *
           reference::largest(product(absolute(a), absolute(b)));
  }
  // CUDA devices round the bias, of at most 2, to the type.
  double error_of_bias() const { return on_cuda() ? 2 * epsilon() : 0; }

  // A sum of n products of f32 numbers is off by at most n u sum |a b|. The result is then rounded
  // to the type. 16-bit operands are exact in f32.
  void expect_product(const Tensor& got, const reference::Matrix& wanted,
                      const reference::Matrix& a, const reference::Matrix& b, DType type,
                      const std::string& what, double more = 0) {
    expect_near(got, wanted, roundoff(type), error_of_sums(a, b) + more, what);
  }
};

}  // namespace onebit::ops
