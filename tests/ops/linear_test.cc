#include "onebit/ops/linear.h"

#include "onebit/ops/reduce.h"
#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

struct Size {
  int64_t rows, in, out;
};
constexpr Size kSizes[] = {{1, 1, 1},     {5, 3, 7},       {33, 96, 2},
                           {130, 65, 48}, {257, 128, 200}, {96, 256, 64}};

class LinearTest : public BackendTest {
 protected:
  // A sum of n products of f32 numbers is off by at most n u sum |a b|; the result is then rounded
  // to the type. 16-bit operands are exact in f32.
  void expect_product(const Tensor& got, const Matrix& wanted, const Matrix& a, const Matrix& b,
                      DType type, const std::string& what, double more = 0) {
    const Matrix bound = product(absolute(a), absolute(b));
    const double error =
        static_cast<double>(a.columns + 2) * 0x1p-24 * reference::largest(bound) + more;
    expect_near(got, wanted, roundoff(type), error, what);
  }
};

TEST_P(LinearTest, ForwardAndBackward) {
  for (const auto& [rows, in, out] : kSizes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << in << " x " << out);
    const Matrix x = random(rows, in, 1), weight = random(out, in, 2), grad = random(rows, out, 3);
    const Matrix bias = random_f32(1, out, 4);
    const Tensor on_x = upload(x), on_weight = upload(weight), on_grad = upload(grad);
    const Tensor on_bias = upload_vector(bias), y = zeros({rows, out}), grad_x = zeros({rows, in});
    linear(context(), {.x = on_x.view(), .weight = on_weight.view(), .bias = {}, .y = y.view()});
    Matrix wanted = product(x, transposed(weight));
    expect_product(y, wanted, x, transposed(weight), dtype(), "without bias");
    linear(context(),
           {.x = on_x.view(), .weight = on_weight.view(), .bias = on_bias.view(), .y = y.view()});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < out; ++j) wanted(i, j) += bias(0, j);
    }
    // CUDA devices round the bias, of at most 2, to the type.
    const double of_bias = GetParam().device == DeviceType::kCuda ? 2 * roundoff(dtype()) : 0;
    expect_product(y, wanted, x, transposed(weight), dtype(), "with bias", of_bias);

    linear_backward_input(
        context(), {.grad_y = on_grad.view(), .weight = on_weight.view(), .grad_x = grad_x.view()});
    expect_product(grad_x, product(grad, weight), grad, weight, dtype(), "grad_x");

    const Matrix before = random_f32(out, in, 5);
    const Tensor grad_weight = upload(before, DType::kF32, {out, in}), grad_bias = zeros_f32({out});
    linear_backward_weight(context(), {.grad_y = on_grad.view(),
                                       .x = on_x.view(),
                                       .grad_weight = grad_weight.view(),
                                       .grad_bias = grad_bias.view()});
    expect_product(grad_weight, sum(before, product(transposed(grad), x)), transposed(grad), x,
                   DType::kF32, "grad_weight");
    expect_near(grad_bias, column_sum(grad), 0x1p-23, static_cast<double>(rows) * 0x1p-23,
                "grad_bias");
  }
}

TEST_P(LinearTest, AddsToGradX) {
  const Matrix grad = random(40, 24, 1), weight = random(24, 56, 2), before = random(40, 56, 3);
  const Tensor on_grad = upload(grad), on_weight = upload(weight), grad_x = upload(before);
  linear_backward_input(
      context(),
      {.grad_y = on_grad.view(), .weight = on_weight.view(), .grad_x = grad_x.view(), .add = true});
  expect_product(grad_x, sum(before, product(grad, weight)), grad, weight, dtype(), "grad_x");
}

TEST_P(LinearTest, NoRows) {
  const Tensor weight = upload(random(4, 3, 1)), x = zeros({0, 3}), y = zeros({0, 4});
  const Tensor grad_weight = zeros_f32({4, 3});
  linear(context(), {.x = x.view(), .weight = weight.view(), .bias = {}, .y = y.view()});
  linear_backward_weight(
      context(),
      {.grad_y = y.view(), .x = x.view(), .grad_weight = grad_weight.view(), .grad_bias = {}});
  EXPECT_EQ(squared_norm(context(), grad_weight.view()), 0);
}

ONEBIT_ON_EVERY_BACKEND(LinearTest);

TEST(LinearErrors, NameTheArgument) {
  Context context = Context::cpu(1);
  const Tensor x = Tensor::zeros({}, DType::kF32, {2, 3}),
               w = Tensor::zeros({}, DType::kF32, {4, 5});
  const Tensor y = Tensor::zeros({}, DType::kF32, {2, 4});
  try {
    linear(context, {.x = x.view(), .weight = w.view(), .bias = {}, .y = y.view()});
    FAIL() << "a weight of another width was taken";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "linear: weight must have shape [4, 3], it has [4, 5]");
  }
}

}  // namespace
}  // namespace onebit::ops
