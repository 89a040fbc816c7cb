// The emulated cuBLASLt's arithmetic: its correctness, and its variation between algorithms.
#include "tests/emulated_cuda/matrix_multiply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace emulated_cuda {
namespace {

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

// C [m, n] = A^T . B, column-major, like gradients of weights: k is the leading extent of both.
std::vector<float> product(int64_t m, int64_t n, int64_t k, const AddingOrder& order) {
  const std::vector<float> a = random_values(k * m, 1), b = random_values(k * n, 2);
  std::vector<float> c(static_cast<size_t>(m * n), NAN);
  EmulatedProduct p;
  p.a_operation = CUBLAS_OP_T;
  multiply(p,
           {.a = a.data(),
            .b = b.data(),
            .c = c.data(),
            .a_layout = {CUDA_R_32F, k, m, k},
            .b_layout = {CUDA_R_32F, k, n, k},
            .c_layout = {CUDA_R_32F, m, n, m},
            .alpha = 1,
            .beta = 0},
           order);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += double{a[static_cast<size_t>(i * k + l)]} * b[static_cast<size_t>(j * k + l)];
      }
      EXPECT_NEAR(c[static_cast<size_t>(i + j * m)], sum, 1e-6 * static_cast<double>(k + 16));
    }
  }
  return c;
}

TEST(EmulatedProducts, TilesAgreeWhereKIsWholeAndNotWhereItIsRagged) {
  const AddingOrder& narrow = kAddingOrders[0];
  const AddingOrder& wide = kAddingOrders[1];
  EXPECT_EQ(product(24, 16, 320, narrow), product(24, 16, 320, wide));
  EXPECT_NE(product(24, 16, 300, narrow), product(24, 16, 300, wide));
  EXPECT_EQ(product(24, 16, 300, narrow), product(24, 16, 300, kAddingOrders[3]));
}

TEST(EmulatedProducts, OtherOrdersHaveOtherBits) {
  EXPECT_NE(product(24, 16, 320, kAddingOrders[0]), product(24, 16, 320, kAddingOrders[2]));
  EXPECT_NE(product(24, 16, 320, kAddingOrders[0]), product(24, 16, 320, kAddingOrders[4]));
}

}  // namespace
}  // namespace emulated_cuda
