// layer_norm, residual_norm, residual_add.
#include "onebit/ops/layer_norm.h"
#include "onebit/ops/residual_norm.h"
#include "tests/ops/backend_test.h"
#include "tests/reference/layer_norm.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

constexpr float kEpsilon = 1e-12f;

struct Size {
  int64_t rows, hidden;
};
constexpr Size kSizes[] = {{1, 8}, {5, 19}, {70, 96}, {300, 768}};

class NormTest : public BackendTest {
 protected:
  // A sum of n rounded terms is off by about sqrt(n) u, by 4 of that hardly ever. Normalised values
  // are below 4 here; every output is made of three sums over a row.
  static double arithmetic(int64_t hidden) { return 3 * 4 * over(hidden) * 0x1p-24; }
  static double over(int64_t terms) { return 4 * std::sqrt(static_cast<double>(terms)) + 4; }
  // gamma away from 0, so that the invertible form is well conditioned.
  Matrix gamma(int64_t hidden) {
    Matrix g = random_f32(1, hidden, 8, 0.25);
    for (double& value : g.data) value = static_cast<float>(value + 1.5);
    return g;
  }
};

TEST_P(NormTest, LayerNorm) {
  for (const auto& [rows, hidden] : kSizes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << hidden);
    const Matrix x = random(rows, hidden, 1), grad_y = random(rows, hidden, 2);
    const Matrix g = gamma(hidden), b = random_f32(1, hidden, 4);
    const Tensor on_x = upload(x), on_g = upload_vector(g), on_b = upload_vector(b);
    const Tensor y = zeros({rows, hidden}), mean = zeros_f32({rows}), inverse = zeros_f32({rows});
    layer_norm(context(), {.x = on_x.view(),
                           .gamma = on_g.view(),
                           .beta = on_b.view(),
                           .epsilon = kEpsilon,
                           .y = y.view(),
                           .mean = mean.view(),
                           .inverse_stddev = inverse.view()});
    const reference::Norm norm = reference::layer_norm(x, g, b, kEpsilon);
    const double error = arithmetic(hidden);
    expect_near(y, norm.y, epsilon(), error, "y");
    expect_near(mean, norm.mean, 0, error, "mean");
    expect_near(inverse, norm.inverse_stddev, error, 0, "inverse_stddev");

    const auto wanted = reference::layer_norm_backward(grad_y, norm, g);
    const Tensor on_grad = upload(grad_y), grad_x = zeros({rows, hidden});
    const Tensor grad_gamma = zeros_f32({hidden}), grad_beta = zeros_f32({hidden});
    layer_norm_backward(context(), {.grad_y = on_grad.view(),
                                    .x = on_x.view(),
                                    .y = {},
                                    .gamma = on_g.view(),
                                    .beta = {},
                                    .mean = mean.view(),
                                    .inverse_stddev = inverse.view(),
                                    .grad_x = grad_x.view(),
                                    .grad_gamma = grad_gamma.view(),
                                    .grad_beta = grad_beta.view()});
    const double rows_error = over(rows) * error;
    expect_near(grad_x, wanted.x, epsilon(), 4 * error, "grad_x");
    expect_near(grad_gamma, wanted.gamma, 0, 4 * rows_error, "grad_gamma");
    expect_near(grad_beta, wanted.beta, 0, rows_error, "grad_beta");

    // From the output, which the type has rounded: x_hat is off by u |y| / gamma.
    const double inverted = 4 * error + 2 * 6 * epsilon();
    layer_norm_backward(context(), {.grad_y = on_grad.view(),
                                    .x = {},
                                    .y = y.view(),
                                    .gamma = on_g.view(),
                                    .beta = on_b.view(),
                                    .mean = {},
                                    .inverse_stddev = inverse.view(),
                                    .grad_x = grad_x.view(),
                                    .grad_gamma = grad_gamma.view(),
                                    .grad_beta = grad_beta.view()});
    expect_near(grad_x, wanted.x, epsilon(), 3 * inverted, "grad_x, inverted");
    Matrix twice = wanted.gamma;  // gradients of parameters are added to
    for (double& value : twice.data) value *= 2;
    expect_near(grad_gamma, twice, 0, 3 * over(rows) * inverted, "both grad_gamma");
  }
}

TEST_P(NormTest, GammaZeroInvertsToZero) {
  const int64_t rows = 6, hidden = 24;
  Matrix g = gamma(hidden);
  g(0, 3) = 0;
  const Matrix x = random(rows, hidden, 1), b = random_f32(1, hidden, 4);
  const Tensor on_x = upload(x), on_g = upload_vector(g), on_b = upload_vector(b);
  const Tensor y = zeros({rows, hidden}), mean = zeros_f32({rows}), inverse = zeros_f32({rows});
  layer_norm(context(), {.x = on_x.view(),
                         .gamma = on_g.view(),
                         .beta = on_b.view(),
                         .y = y.view(),
                         .mean = mean.view(),
                         .inverse_stddev = inverse.view()});
  const Tensor grad = upload(random(rows, hidden, 2)), grad_x = zeros({rows, hidden});
  const Tensor grad_gamma = zeros_f32({hidden}), grad_beta = zeros_f32({hidden});
  layer_norm_backward(context(), {.grad_y = grad.view(),
                                  .x = {},
                                  .y = y.view(),
                                  .gamma = on_g.view(),
                                  .beta = on_b.view(),
                                  .mean = {},
                                  .inverse_stddev = inverse.view(),
                                  .grad_x = grad_x.view(),
                                  .grad_gamma = grad_gamma.view(),
                                  .grad_beta = grad_beta.view()});
  const Tensor values = to_cpu_f32(grad_x.view()), of_gamma = to_cpu_f32(grad_gamma.view());
  for (int64_t i = 0; i < rows * hidden; ++i) EXPECT_TRUE(std::isfinite(values.data<float>()[i]));
  EXPECT_EQ(of_gamma.data<float>()[3], 0.0f);
  EXPECT_NE(of_gamma.data<float>()[4], 0.0f);
}

struct ResidualCase {
  double probability;
  bool keeps_sum, extra;
};

TEST_P(NormTest, ResidualNorm) {
  for (const auto& [rows, hidden] : kSizes) {
    for (const ResidualCase& c : {ResidualCase{0, true, false}, ResidualCase{0.1, true, true},
                                  ResidualCase{0.3, false, true}}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << hidden << " p " << c.probability);
      const auto drop = rule(c.probability, rows);
      const Matrix residual = random(rows, hidden, 1), x = random(rows, hidden, 2);
      const Matrix g = gamma(hidden), b = random_f32(1, hidden, 4);
      const Matrix sums = sum(residual, drop.apply(x));
      const reference::Norm norm = reference::layer_norm(sums, g, b, kEpsilon);
      const Tensor on_residual = upload(residual), on_x = upload(x);
      const Tensor on_g = upload_vector(g), on_b = upload_vector(b), kept = zeros({rows, hidden});
      const Tensor y = zeros({rows, hidden}), mean = zeros_f32({rows}), inverse = zeros_f32({rows});
      residual_norm(context(), {.residual = on_residual.view(),
                                .x = on_x.view(),
                                .dropout = dropout(drop),
                                .gamma = on_g.view(),
                                .beta = on_b.view(),
                                .epsilon = kEpsilon,
                                .sum = c.keeps_sum ? kept.view() : View{},
                                .y = y.view(),
                                .mean = mean.view(),
                                .inverse_stddev = inverse.view()});
      const double error = arithmetic(hidden);
      expect_near(y, norm.y, epsilon(), error, "y");
      if (c.keeps_sum) expect_near(kept, sums, 2 * epsilon(), 0x1p-21, "sum");

      const Matrix grad_y = random(rows, hidden, 5), extra_y = random(rows, hidden, 6);
      const Matrix extra_sum = random(rows, hidden, 7);
      auto wanted =
          reference::layer_norm_backward(c.extra ? sum(grad_y, extra_y) : grad_y, norm, g);
      if (c.extra) wanted.x = sum(wanted.x, extra_sum);
      const Matrix wanted_x = drop.apply(wanted.x);
      const Tensor on_grad = upload(grad_y), on_extra_y = upload(extra_y);
      const Tensor on_extra_sum = upload(extra_sum);
      const Tensor grad_residual = zeros({rows, hidden}), grad_x = zeros({rows, hidden});
      const Tensor grad_gamma = zeros_f32({hidden}), grad_beta = zeros_f32({hidden});
      const Tensor grad_bias = zeros_f32({hidden});
      residual_norm_backward(context(), {.grad_y = on_grad.view(),
                                         .grad_y_extra = c.extra ? on_extra_y.view() : View{},
                                         .grad_sum_extra = c.extra ? on_extra_sum.view() : View{},
                                         .sum = c.keeps_sum ? kept.view() : View{},
                                         .y = y.view(),
                                         .gamma = on_g.view(),
                                         .beta = on_b.view(),
                                         .mean = mean.view(),
                                         .inverse_stddev = inverse.view(),
                                         .dropout = dropout(drop),
                                         .grad_residual = grad_residual.view(),
                                         .grad_x = grad_x.view(),
                                         .grad_gamma = grad_gamma.view(),
                                         .grad_beta = grad_beta.view(),
                                         .grad_bias = grad_bias.view()});
      // The saved sum or output was rounded: x_hat is off by u |y|, gradients by a few times that.
      const double saved = 8 * error + 2 * 3 * 8 * epsilon();
      const double rows_error = over(rows) * saved;
      expect_near(grad_residual, wanted.x, epsilon(), saved, "grad_residual");
      expect_near(grad_x, wanted_x, epsilon(), 2 * saved, "grad_x");
      expect_near(grad_gamma, wanted.gamma, 0, rows_error, "grad_gamma");
      expect_near(grad_beta, wanted.beta, 0, rows_error, "grad_beta");
      expect_near(grad_bias, column_sum(wanted_x), 0, 2 * rows_error, "grad_bias");
    }
  }
}

TEST_P(NormTest, ResidualAdd) {
  const int64_t rows = 70, hidden = 51;
  const auto drop = rule(0.2, rows);
  const Matrix residual = random(rows, hidden, 1), x = random(rows, hidden, 2);
  const Tensor on_residual = upload(residual), on_x = upload(x), y = zeros({rows, hidden});
  residual_add(
      context(),
      {.residual = on_residual.view(), .x = on_x.view(), .dropout = dropout(drop), .y = y.view()});
  expect_near(y, sum(residual, drop.apply(x)), epsilon(), 0x1p-20, "y");
  const Tensor grad_x = zeros({rows, hidden}), grad_bias = zeros_f32({hidden});
  residual_add_backward(context(), {.grad_y = on_x.view(),
                                    .dropout = dropout(drop),
                                    .grad_x = grad_x.view(),
                                    .grad_bias = grad_bias.view()});
  expect_near(grad_x, drop.apply(x), 2 * epsilon(), 0, "grad_x");
  expect_near(grad_bias, column_sum(drop.apply(x)), 0, 3 * rows * over(rows) * 0x1p-24,
              "grad_bias");
}

TEST_P(NormTest, GradientsMayReplaceTheirInputs) {
  const int64_t rows = 33, hidden = 40;
  const auto drop = rule(0.25, rows);
  const Tensor g = upload_vector(gamma(hidden)), b = upload_vector(random_f32(1, hidden, 4));
  const Tensor sums = upload(random(rows, hidden, 1)), y = zeros({rows, hidden});
  const Tensor mean = zeros_f32({rows}), inverse = zeros_f32({rows});
  layer_norm(context(), {.x = sums.view(),
                         .gamma = g.view(),
                         .beta = b.view(),
                         .y = y.view(),
                         .mean = mean.view(),
                         .inverse_stddev = inverse.view()});
  const auto run = [&](const Tensor& grad_y, const Tensor& extra, const Tensor& grad_residual,
                       const Tensor& grad_x) {
    const Tensor grad_gamma = zeros_f32({hidden}), grad_beta = zeros_f32({hidden});
    residual_norm_backward(context(), {.grad_y = grad_y.view(),
                                       .grad_y_extra = {},
                                       .grad_sum_extra = extra.view(),
                                       .sum = sums.view(),
                                       .y = {},
                                       .gamma = g.view(),
                                       .beta = {},
                                       .mean = mean.view(),
                                       .inverse_stddev = inverse.view(),
                                       .dropout = dropout(drop),
                                       .grad_residual = grad_residual.view(),
                                       .grad_x = grad_x.view(),
                                       .grad_gamma = grad_gamma.view(),
                                       .grad_beta = grad_beta.view(),
                                       .grad_bias = {}});
  };
  const Tensor grad_y = upload(random(rows, hidden, 2)), extra = upload(random(rows, hidden, 3));
  const Tensor grad_residual = zeros({rows, hidden}), grad_x = zeros({rows, hidden});
  run(grad_y, extra, grad_residual, grad_x);
  run(grad_y, extra, extra, grad_y);
  EXPECT_EQ(bytes(extra), bytes(grad_residual));
  EXPECT_EQ(bytes(grad_y), bytes(grad_x));
}

ONEBIT_ON_EVERY_BACKEND(NormTest);

}  // namespace
}  // namespace onebit::ops
