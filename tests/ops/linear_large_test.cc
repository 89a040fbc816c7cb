#include "onebit/math/ops/linear.h"
#include "tests/ops/linear_fixture.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class LinearLargeTest : public LinearFixture {};

// Products of the size of a layer's: several blocks of rows and of columns, and a gradient that
// sums over more rows than one pass. Threads change nothing, and neither does the number of rows,
// except with AVX2.
TEST_P(LinearLargeTest, ForwardAndBackward) {
  if (on_cuda()) GTEST_SKIP() << "sizes at which a CPU's products have several blocks";
  constexpr int64_t kRows = 2309, kIn = 290, kOut = 321, kFewRows = 300;
  const Matrix x = random(kRows, kIn, 1), weight = random(kOut, kIn, 2, 0.125);
  const Matrix grad = random(kRows, kOut, 3), bias = random_f32(1, kOut, 4);
  const Tensor on_x = upload(x), on_weight = upload(weight), on_grad = upload(grad);
  const Tensor on_bias = upload_vector(bias);
  struct Results {
    Tensor y, grad_x, grad_weight;
  };
  const auto compute = [&](Context& on) {
    Results all{zeros({kRows, kOut}), upload(random(kRows, kIn, 5)),
                Tensor::zeros(on.device(), DType::kF32, {kOut, kIn})};
    linear(
        on,
        {.x = on_x.view(), .weight = on_weight.view(), .bias = on_bias.view(), .y = all.y.view()});
    linear_backward_input(on, {.grad_y = on_grad.view(),
                               .weight = on_weight.view(),
                               .grad_x = all.grad_x.view(),
                               .add = true});
    linear_backward_weight(on, {.grad_y = on_grad.view(),
                                .x = on_x.view(),
                                .grad_weight = all.grad_weight.view(),
                                .overwrite_weight = true,
                                .grad_bias = {}});
    return all;
  };
  Matrix wanted = product(x, transposed(weight));
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kOut; ++j) wanted(i, j) += bias(0, j);
  }
  const Matrix wanted_grad_x = sum(random(kRows, kIn, 5), product(grad, weight));
  const Matrix wanted_grad_weight = product(transposed(grad), x);
  const auto expect_right = [&](const Results& got) {
    expect_product(got.y, wanted, x, transposed(weight), dtype(), "y", error_of_bias() + 0x1p-22);
    expect_product(got.grad_x, wanted_grad_x, grad, weight, dtype(), "grad_x", 0x1p-22);
    expect_product(got.grad_weight, wanted_grad_weight, transposed(grad), x, DType::kF32,
                   "grad_weight");
  };
  const Results all = compute(context());
  expect_right(all);
  Context three = Context::cpu(3);
  const Results again = compute(three);
  if (!products_keep_their_order()) {
    expect_right(again);
    return;
  }
  EXPECT_EQ(bytes(again.y), bytes(all.y));
  EXPECT_EQ(bytes(again.grad_x), bytes(all.grad_x));
  EXPECT_EQ(bytes(again.grad_weight), bytes(all.grad_weight));
  const Tensor few = zeros({kFewRows, kOut});
  linear(context(), {.x = on_x.view().rows(0, kFewRows),
                     .weight = on_weight.view(),
                     .bias = on_bias.view(),
                     .y = few.view()});
  std::vector<char> first_rows = bytes(all.y);
  first_rows.resize(bytes(few).size());
  EXPECT_EQ(bytes(few), first_rows);
}

ONEBIT_ON_EVERY_BACKEND(LinearLargeTest);

}  // namespace
}  // namespace onebit::ops
