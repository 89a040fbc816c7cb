#include "onebit/math/ops/activation.h"

#include <bit>
#include <utility>

#include "tests/ops/backend_test.h"
#include "tests/reference/activation.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

constexpr ActivationKind kKinds[] = {ActivationKind::kGeluErf, ActivationKind::kGeluTanh,
                                     ActivationKind::kRelu, ActivationKind::kSwish,
                                     ActivationKind::kTanh};

class ActivationTest : public BackendTest {};

// Values and slopes are products of at most four factors, each right to a few units of f32.
constexpr double kArithmetic = 16 * 0x1p-24;

TEST_P(ActivationTest, ForwardAndBackward) {
  for (const ActivationKind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    const int64_t rows = 37, columns = 53;
    const Matrix x = random(rows, columns, 1, 3), grad = random(rows, columns, 2);
    Matrix y = x, slope = x;
    for (double& value : y.data) value = reference::activation(kind, value);
    for (double& value : slope.data) value = reference::activation_slope(kind, value);
    const Tensor on_x = upload(x), on_grad = upload(grad), on_y = zeros({rows, columns});
    activation(context(), {.kind = kind, .x = on_x.view(), .y = on_y.view()});
    expect_near(on_y, y, epsilon(), kArithmetic * 6, "y");

    const bool from_y = kind == ActivationKind::kTanh;
    const Matrix stored = rounded(y, dtype());
    Matrix grad_x = grad;
    for (size_t i = 0; i < grad_x.data.size(); ++i) {
      grad_x.data[i] *= from_y ? 1 - stored.data[i] * stored.data[i] : slope.data[i];
    }
    const Tensor saved = from_y ? upload(y) : upload(x);
    const Tensor on_grad_x = zeros({rows, columns}), grad_bias = upload_vector(Matrix(1, columns));
    for (int call = 0; call < 2; ++call) {  // the bias gradient is added to
      activation_backward(context(), {.kind = kind,
                                      .grad_y = on_grad.view(),
                                      .saved = saved.view(),
                                      .grad_x = on_grad_x.view(),
                                      .grad_bias = grad_bias.view()});
    }
    expect_near(on_grad_x, grad_x, epsilon(), kArithmetic * 12, "grad_x");
    Matrix twice = column_sum(grad_x);
    for (double& value : twice.data) value *= 2;
    expect_near(grad_bias, twice, 0x1p-23, 2 * rows * kArithmetic * 12, "grad_bias");
  }
}

TEST_P(ActivationTest, GatedForwardAndBackward) {
  for (const ActivationKind kind : kKinds) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{37, 53}, {5, 264}}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << ", " << columns << " columns");
      const Matrix x = random(rows, 2 * columns, 1), grad_y = random(rows, columns, 2);
      Matrix y(rows, columns), grad_x = x;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const double gate = x(i, j), factor = x(i, columns + j), grad = grad_y(i, j);
          y(i, j) = reference::activation(kind, gate) * factor;
          grad_x(i, j) = grad * factor * reference::activation_slope(kind, gate);
          grad_x(i, columns + j) = grad * reference::activation(kind, gate);
        }
      }
      const Tensor on_x = upload(x), on_grad = upload(grad_y), on_y = zeros({rows, columns});
      gated_activation(context(), {.kind = kind, .x = on_x.view(), .y = on_y.view()});
      // Values up to 2 times factors up to 2. GELU for results of bf16 has its own error.
      const double of_values = dtype() == DType::kF32 ? 0 : 5e-5;
      expect_near(on_y, y, epsilon() + of_values, kArithmetic * 8, "y");
      const Tensor on_grad_x = zeros({rows, 2 * columns});
      const Tensor grad_bias = zeros_f32({2 * columns});
      for (int call = 0; call < 2; ++call) {  // the bias gradient is added to
        gated_activation_backward(context(), {.kind = kind,
                                              .grad_y = on_grad.view(),
                                              .x = on_x.view(),
                                              .grad_x = on_grad_x.view(),
                                              .grad_bias = grad_bias.view()});
      }
      expect_near(on_grad_x, grad_x, epsilon(), kArithmetic * 16, "grad_x");
      Matrix twice = column_sum(grad_x);
      for (double& value : twice.data) value *= 2;
      expect_near(grad_bias, twice, 0x1p-23, 2 * rows * kArithmetic * 16, "grad_bias");
      // The gradient may replace x.
      gated_activation_backward(context(), {.kind = kind,
                                            .grad_y = on_grad.view(),
                                            .x = on_x.view(),
                                            .grad_x = on_x.view(),
                                            .grad_bias = {}});
      EXPECT_EQ(bytes(on_x), bytes(on_grad_x));
    }
  }
}

// Both tails of GELU keep their relative accuracy.
TEST(Activation, GeluErfIsAccurateToF32) {
  Context context = Context::cpu(1);
  const int64_t count = 20001;
  const Tensor x(Device{}, DType::kF32, {1, count}), y(Device{}, DType::kF32, {1, count});
  for (int64_t i = 0; i < count; ++i) x.data<float>()[i] = static_cast<float>(i - 10000) / 1600;
  activation(context, {.kind = ActivationKind::kGeluErf, .x = x.view(), .y = y.view()});
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double exact = reference::activation(ActivationKind::kGeluErf, x.data<float>()[i]);
    if (exact != 0) worst = std::max(worst, std::abs(y.data<float>()[i] / exact - 1));
  }
  // exp(-x^2 / 2) alone carries x^2 / 2 units of the rounded square: 20 at |x| = 6.25.
  EXPECT_LE(worst, 32 * 0x1p-24);
}

// Every bf16 number: the result is off by one rounding and by the error of
// normal_distribution_for_bf16.
TEST(Activation, GeluErfInBf16IsOneRoundingOff) {
  Context context = Context::cpu(1);
  const int64_t count = 1 << 16;
  const Tensor x(Device{}, DType::kBF16, {1, count}), y(Device{}, DType::kBF16, {1, count});
  for (int64_t i = 0; i < count; ++i) {
    x.data<bf16>()[i] = std::bit_cast<bf16>(static_cast<uint16_t>(i));
  }
  activation(context, {.kind = ActivationKind::kGeluErf, .x = x.view(), .y = y.view()});
  int64_t compared = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<float>(x.data<bf16>()[i]);
    const auto got = static_cast<float>(y.data<bf16>()[i]);
    if (std::isnan(at)) {
      EXPECT_TRUE(std::isnan(got)) << i;
    }
    if (std::isfinite(at) && at < -8) {
      EXPECT_LE(std::abs(got), 1e-15 * std::abs(at)) << at;
    }
    if (!std::isfinite(at) || at < -8 || std::abs(at) < 1e-30f) continue;
    const double exact = reference::activation(ActivationKind::kGeluErf, at);
    EXPECT_LE(std::abs(got - exact), (0x1p-8 + 5e-5) * std::abs(exact)) << at;
    ++compared;
  }
  EXPECT_GT(compared, 40000);
}

TEST(Activation, NanStaysNan) {
  Context context = Context::cpu(1);
  for (const ActivationKind kind : kKinds) {
    const Tensor x(Device{}, DType::kF32, {1, 9}), y(Device{}, DType::kF32, {1, 9});
    for (int64_t i = 0; i < 9; ++i) x.data<float>()[i] = std::bit_cast<float>(0x7FC12345u);
    activation(context, {.kind = kind, .x = x.view(), .y = y.view()});
    for (int64_t i = 0; i < 9; ++i) EXPECT_TRUE(std::isnan(y.data<float>()[i])) << i;
  }
}

ONEBIT_ON_EVERY_BACKEND(ActivationTest);

}  // namespace
}  // namespace onebit::ops
