#include "onebit/math/ops/linear.h"

#include <map>
#include <numbers>

#include "onebit/math/device/profile.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/reduce.h"
#include "tests/ops/linear_fixture.h"
#include "tests/reference/activation.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

struct Size {
  int64_t rows, in, out;
};
// The last two are large enough for CUDA devices to measure algorithms.
constexpr Size kSizes[] = {{1, 1, 1},       {5, 3, 7},     {33, 96, 2},     {130, 65, 48},
                           {257, 128, 200}, {96, 256, 64}, {261, 256, 256}, {40, 768, 768}};

constexpr ActivationKind kKinds[] = {ActivationKind::kGeluErf, ActivationKind::kGeluTanh,
                                     ActivationKind::kRelu};
// The relative error of an activation's value or slope, as in activation_test.cc.
constexpr double kArithmetic = 16 * 0x1p-24;

// The derivative of tanh-GELU's slope by its tanh.
double slope_by_tanh(double x) {
  const double argument = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  const double by_x = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return 0.5 + std::abs(x * std::tanh(argument) * by_x);
}

class LinearTest : public LinearFixture {
 protected:
  // The error where tanh-GELU is part of the product.
  double error_of_tanh() const { return on_cuda() && dtype() != DType::kF32 ? 0x1p-11 : 0; }

  static void expect_within(const Tensor& got, const Matrix& wanted, const Matrix& tolerance,
                            const std::string& what) {
    const Tensor host = to_cpu_f32(got.view());
    ASSERT_EQ(host.view().elements(), static_cast<int64_t>(wanted.data.size())) << what;
    for (size_t i = 0; i < wanted.data.size(); ++i) {
      const double value = host.data<float>()[i];
      ASSERT_LE(std::abs(value - wanted.data[i]), tolerance.data[i])
          << what << " at " << i << ": got " << value << ", wanted " << wanted.data[i];
    }
  }

  void check_other_contexts(Size size);
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
    expect_product(y, wanted, x, transposed(weight), dtype(), "with bias", error_of_bias());

    linear_backward_input(
        context(), {.grad_y = on_grad.view(), .weight = on_weight.view(), .grad_x = grad_x.view()});
    expect_product(grad_x, product(grad, weight), grad, weight, dtype(), "grad_x");

    const Matrix before = random_f32(out, in, 5);
    const Matrix bias_before = random_f32(1, out, 6);
    const Tensor grad_weight = upload(before, DType::kF32, {out, in});
    const Tensor grad_bias = upload_vector(bias_before);
    linear_backward_weight(context(), {.grad_y = on_grad.view(),
                                       .x = on_x.view(),
                                       .grad_weight = grad_weight.view(),
                                       .grad_bias = grad_bias.view()});
    expect_product(grad_weight, sum(before, product(transposed(grad), x)), transposed(grad), x,
                   DType::kF32, "grad_weight");
    expect_near(grad_bias, sum(bias_before, column_sum(grad)), 0x1p-23,
                static_cast<double>(rows + 1) * 0x1p-22, "grad_bias");

    linear_backward_weight(context(), {.grad_y = on_grad.view(),
                                       .x = on_x.view(),
                                       .grad_weight = grad_weight.view(),
                                       .overwrite_weight = true,
                                       .grad_bias = grad_bias.view()});
    expect_product(grad_weight, product(transposed(grad), x), transposed(grad), x, DType::kF32,
                   "grad_weight, overwritten");
    expect_near(grad_bias, sum(sum(bias_before, column_sum(grad)), column_sum(grad)), 0x1p-23,
                static_cast<double>(2 * rows + 1) * 0x1p-22, "grad_bias, twice");
  }
}

// A head of two outputs over the tokens of a large micro-batch: the last part of the rows is
// neither as long as the others nor whole tiles.
TEST_P(LinearTest, WeightGradientOfFewOutputs) {
  constexpr int64_t kRows = 4103, kIn = 512, kOut = 2;
  const Matrix x = random(kRows, kIn, 1), grad = random(kRows, kOut, 2);
  const Matrix before = random_f32(kOut, kIn, 3);
  const Tensor on_x = upload(x), on_grad = upload(grad);
  const Tensor grad_weight = upload(before, DType::kF32, {kOut, kIn});
  linear_backward_weight(
      context(), {.grad_y = on_grad.view(), .x = on_x.view(), .grad_weight = grad_weight.view()});
  expect_product(grad_weight, sum(before, product(transposed(grad), x)), transposed(grad), x,
                 DType::kF32, "grad_weight");
  linear_backward_weight(context(), {.grad_y = on_grad.view(),
                                     .x = on_x.view(),
                                     .grad_weight = grad_weight.view(),
                                     .overwrite_weight = true,
                                     .grad_bias = {}});
  expect_product(grad_weight, product(transposed(grad), x), transposed(grad), x, DType::kF32,
                 "grad_weight, overwritten");
}

// A bias that was rounded beforehand equals the f32 bias that a CUDA device rounds.
TEST_P(LinearTest, BiasOfTheType) {
  for (const auto& [rows, in, out] : kSizes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << in << " x " << out);
    const Tensor x = upload(random(rows, in, 1)), weight = upload(random(out, in, 2));
    const Matrix numbers = random(1, out, 4);  // as the type has them
    const Tensor bias = upload_vector(numbers), of_type = upload(numbers);
    const View rounded = of_type.view().reshaped({out});
    const Tensor wanted = zeros({rows, out}), y = zeros({rows, out}), sums = zeros({rows, out});
    const auto run = [&](const View& given, const Tensor& to) {
      linear(context(), {.x = x.view(), .weight = weight.view(), .bias = given, .y = to.view()});
      linear_activation(context(), {.kind = ActivationKind::kGeluErf,
                                    .x = x.view(),
                                    .weight = weight.view(),
                                    .bias = given,
                                    .pre_activation = sums.view(),
                                    .y = to.view()});
    };
    run(bias.view(), wanted);
    if (!on_cuda() && dtype() != DType::kF32) {
      EXPECT_THROW(run(rounded, y), std::exception);
      continue;
    }
    run(rounded, y);
    EXPECT_EQ(bytes(y), bytes(wanted));
  }
}

TEST_P(LinearTest, ActivationForward) {
  for (const auto& [rows, in, out] : kSizes) {
    const Matrix x = random(rows, in, 1), weight = random(out, in, 2, 0.125);
    const Matrix bias = random_f32(1, out, 4);
    Matrix sums = product(x, transposed(weight)), sum_tolerance = sums;
    const double of_sum = error_of_sums(x, transposed(weight)) + error_of_bias();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < out; ++j) {
        sums(i, j) += bias(0, j);
        sum_tolerance(i, j) = epsilon() * std::abs(sums(i, j)) + of_sum;
      }
    }
    const Tensor on_x = upload(x), on_weight = upload(weight), on_bias = upload_vector(bias);
    for (const ActivationKind kind : kKinds) {
      SCOPED_TRACE(testing::Message()
                   << static_cast<int>(kind) << ": " << rows << " x " << in << " x " << out);
      const Tensor pre_activation = zeros({rows, out}), y = zeros({rows, out});
      linear_activation(context(), {.kind = kind,
                                    .x = on_x.view(),
                                    .weight = on_weight.view(),
                                    .bias = on_bias.view(),
                                    .pre_activation = pre_activation.view(),
                                    .y = y.view()});
      Matrix wanted = sums, tolerance = sums;
      for (size_t i = 0; i < sums.data.size(); ++i) {
        const double at = sums.data[i];
        wanted.data[i] = reference::activation(kind, at);
        // y is rounded, and may have been made from the rounded sum. No slope is above 1.13.
        tolerance.data[i] = epsilon() * std::abs(wanted.data[i]) + 1.13 * sum_tolerance.data[i] +
                            (kArithmetic + error_of_tanh() / 2) * std::abs(at);
      }
      expect_within(pre_activation, sums, sum_tolerance, "pre_activation");
      expect_within(y, wanted, tolerance, "y");
    }
  }
}

TEST_P(LinearTest, ActivationBackward) {
  for (const auto& [rows, in, out] : kSizes) {
    const Matrix grad = random(rows, out, 1), weight = random(out, in, 2, 0.125);
    const Matrix saved = random(rows, in, 3, 2), bias_before = random_f32(1, in, 4);
    const Matrix through = product(grad, weight);
    const double of_sum = error_of_sums(grad, weight);
    const Tensor on_grad = upload(grad), on_weight = upload(weight), on_saved = upload(saved);
    for (const ActivationKind kind : kKinds) {
      SCOPED_TRACE(testing::Message()
                   << static_cast<int>(kind) << ": " << rows << " x " << in << " x " << out);
      const Tensor grad_x = zeros({rows, in}), grad_bias = upload_vector(bias_before);
      linear_backward_activation(context(), {.kind = kind,
                                             .grad_y = on_grad.view(),
                                             .weight = on_weight.view(),
                                             .saved = on_saved.view(),
                                             .grad_x = grad_x.view(),
                                             .grad_bias = grad_bias.view()});
      Matrix wanted = through, tolerance = through, bias_tolerance(1, in);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < in; ++j) {
          const double at = saved(i, j);
          wanted(i, j) *= reference::activation_slope(kind, at);
          // The sum may have been rounded before and after the slope was applied.
          tolerance(i, j) =
              2.01 * epsilon() * std::abs(wanted(i, j)) + 1.13 * of_sum +
              std::abs(through(i, j)) * (12 * kArithmetic + error_of_tanh() * slope_by_tanh(at));
          bias_tolerance(0, j) +=
              tolerance(i, j) + static_cast<double>(rows) * 0x1p-24 * std::abs(wanted(i, j));
        }
      }
      for (double& value : bias_tolerance.data) value += 0x1p-22;
      expect_within(grad_x, wanted, tolerance, "grad_x");
      expect_within(grad_bias, sum(bias_before, column_sum(wanted)), bias_tolerance, "grad_bias");
    }
  }
}

// The fastest algorithm is chosen by measurements, which are never the same twice.
void LinearTest::check_other_contexts(Size size) {
  const auto [rows, in, out] = size;
  const Tensor x = upload(random(rows, in, 1)), weight = upload(random(out, in, 2));
  const Tensor grad = upload(random(rows, out, 3)), bias = upload_vector(random_f32(1, out, 4));
  const auto run = [&, rows = rows, in = in, out = out](Context& given) {
    const Tensor y = zeros({rows, out}), activated = zeros({rows, out}), grad_x = zeros({rows, in});
    const Tensor grad_weight = zeros_f32({out, in}), grad_bias = zeros_f32({out});
    linear_activation(given, {.kind = ActivationKind::kGeluTanh,
                              .x = x.view(),
                              .weight = weight.view(),
                              .bias = bias.view(),
                              .pre_activation = y.view(),
                              .y = activated.view()});
    linear_backward_input(
        given, {.grad_y = grad.view(), .weight = weight.view(), .grad_x = grad_x.view()});
    linear_backward_weight(given, {.grad_y = grad.view(),
                                   .x = x.view(),
                                   .grad_weight = grad_weight.view(),
                                   .grad_bias = grad_bias.view()});
    given.synchronize();
    std::vector<std::vector<char>> all;
    for (const Tensor* made : {&y, &activated, &grad_x, &grad_weight, &grad_bias}) {
      all.push_back(bytes(*made));
    }
    return all;
  };
  const auto first = run(context());
  for (int repeat = 0; repeat < 3; ++repeat) {
    Context another = open(GetParam().device, 2);
    EXPECT_EQ(run(another), first) << rows << " rows";
  }
}

TEST_P(LinearTest, AnotherContextGivesTheSameBits) {
  check_other_contexts({261, 256, 264});
}

// Algorithms of other tiles add these rows in other orders, and whole tiles of rows in one order.
TEST_P(LinearTest, RowsThatAreNoWholeTilesGiveTheSameBits) {
  check_other_contexts({300, 256, 264});
  check_other_contexts({1130, 128, 152});
}

// An algorithm's sample has one token then, of which there are no two halves.
TEST_P(LinearTest, FewRowsOfALargeMatrix) {
  if (context().device().is_cpu() || dtype() != DType::kF32) {
    GTEST_SKIP() << "the choice among algorithms is the same in every type";
  }
  check_other_contexts({5, 2048, 1032});
}

TEST_P(LinearTest, AddsToGradX) {
  const Matrix grad = random(40, 24, 1), weight = random(24, 56, 2), before = random(40, 56, 3);
  const Tensor on_grad = upload(grad), on_weight = upload(weight), grad_x = upload(before);
  linear_backward_input(
      context(),
      {.grad_y = on_grad.view(), .weight = on_weight.view(), .grad_x = grad_x.view(), .add = true});
  // cuBLASLt may round the product before it adds the existing values.
  const Matrix added = product(grad, weight), wanted = sum(before, added);
  const double first_rounding = context().device().is_cpu() ? 0 : epsilon();
  const Tensor got = to_cpu_f32(grad_x.view());
  for (size_t i = 0; i < wanted.data.size(); ++i) {
    const double tolerance = epsilon() * std::abs(wanted.data[i]) +
                             first_rounding * std::abs(added.data[i]) + error_of_sums(grad, weight);
    ASSERT_NEAR(got.data<float>()[i], wanted.data[i], tolerance) << "grad_x at " << i;
  }
}

TEST_P(LinearTest, NoRows) {
  const Tensor weight = upload(random(4, 3, 1)), x = zeros({0, 3}), y = zeros({0, 4});
  const Tensor grad_weight = zeros_f32({4, 3});
  linear(context(), {.x = x.view(), .weight = weight.view(), .bias = {}, .y = y.view()});
  fill(context(), grad_weight.view(), 3);
  for (const bool overwrites : {false, true}) {
    linear_backward_weight(context(), {.grad_y = y.view(),
                                       .x = x.view(),
                                       .grad_weight = grad_weight.view(),
                                       .overwrite_weight = overwrites,
                                       .grad_bias = {}});
    EXPECT_EQ(squared_norm(context(), grad_weight.view()), overwrites ? 0 : 4 * 3 * 9);
  }
}

ONEBIT_ON_EVERY_BACKEND(LinearTest);

// A product that is first requested with a sum and then without counts once in a profile.
TEST(LinearWork, EveryProductCountsOnce) {
  const auto tensor = [](Shape shape) { return Tensor::zeros({}, DType::kF32, shape); };
  const Tensor x = tensor({2, 3}), y = tensor({2, 4}), weight = tensor({4, 3}), bias = tensor({4});
  Context context = Context::cpu(1);
  Profile profile;
  context.set_profile_track(&profile.track("main"));
  profile.start({});
  linear_activation(context, {.kind = ActivationKind::kGeluTanh,
                              .x = x.view(),
                              .weight = weight.view(),
                              .bias = bias.view(),
                              .pre_activation = y.view(),
                              .y = tensor({2, 4}).view()});
  linear_backward_input(context, {.grad_y = y.view(), .weight = weight.view(), .grad_x = x.view()});
  linear_backward_weight(
      context,
      {.grad_y = y.view(), .x = x.view(), .grad_weight = weight.view(), .grad_bias = bias.view()});
  std::map<std::string, double> flops;
  int64_t calls = 0;
  for (const ProfileSum& sum : profile.track("main").sums()) {
    calls += sum.calls;
    if (sum.work.use == nullptr) continue;
    EXPECT_EQ(sum.work.in, 3);
    EXPECT_EQ(sum.work.out, 4);
    flops[sum.work.use] = sum.work.flops;
  }
  EXPECT_EQ(calls, 5);  // three products, activation, column_sum
  EXPECT_EQ(flops, (std::map<std::string, double>{
                       {"forward", 48}, {"gradient of x", 48}, {"gradient of weight", 48}}));
}

TEST(LinearErrors, NameTheArgument) {
  Context context = Context::cpu(1);
  const Tensor x = Tensor::zeros({}, DType::kF32, {2, 3}),
               w = Tensor::zeros({}, DType::kF32, {4, 5});
  const Tensor y = Tensor::zeros({}, DType::kF32, {2, 4});
  try {
    linear(context, {.x = x.view(), .weight = w.view(), .bias = {}, .y = y.view()});
    FAIL() << "a weight of another width was taken";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "linear: weight must have shape [4, 3], but has [4, 5]");
  }
}

}  // namespace
}  // namespace onebit::ops
