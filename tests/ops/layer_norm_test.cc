#include "onebit/math/ops/layer_norm.h"

#include "tests/ops/norm_fixture.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class LayerNormTest : public NormTest {
 protected:
  void expect_reference(const NormForm& form, int64_t rows, int64_t hidden);
};

TEST_P(LayerNormTest, ForwardAndBackward) {
  Combinations combinations;
  for (const NormForm& form : kNormForms) {
    for (const auto& [rows, hidden] : kNormSizes) {
      SCOPED_TRACE(testing::Message() << form << ", " << rows << " x " << hidden);
      if (combinations.next()) expect_reference(form, rows, hidden);
    }
  }
}

// What is left out is neither read nor written.
void LayerNormTest::expect_reference(const NormForm& form, int64_t rows, int64_t hidden) {
  const Matrix x = random(rows, hidden, 1), grad_y = random(rows, hidden, 2);
  const Matrix g = gamma(hidden), b = beta(form, hidden);
  const Tensor on_x = upload(x), on_g = upload_vector(g), on_b = upload_vector(b);
  const Tensor y = zeros({rows, hidden}), means = zeros_f32({rows}), inverse = zeros_f32({rows});
  const View mean = form.kind == NormKind::kLayer ? means.view() : View();
  const auto if_beta = [&](const Tensor& tensor) { return form.has_beta ? tensor.view() : View(); };
  layer_norm(context(), {.kind = form.kind,
                         .x = on_x.view(),
                         .gamma = on_g.view(),
                         .beta = if_beta(on_b),
                         .epsilon = kEpsilon,
                         .y = y.view(),
                         .mean = mean,
                         .inverse_stddev = inverse.view()});
  const reference::Norm norm = reference::layer_norm(x, g, b, kEpsilon, form.kind);
  const double error = arithmetic(hidden);
  expect_near(y, norm.y, epsilon(), error, "y");
  expect_near(means, norm.mean, 0, error, "mean");
  expect_near(inverse, norm.inverse_stddev, error, 0, "inverse_stddev");

  const auto wanted = reference::layer_norm_backward(grad_y, norm, g, form.kind);
  const Tensor on_grad = upload(grad_y), grad_x = zeros({rows, hidden});
  const Tensor grad_gamma = zeros_f32({hidden}), grad_beta = zeros_f32({hidden});
  layer_norm_backward(context(), {.kind = form.kind,
                                  .grad_y = on_grad.view(),
                                  .x = on_x.view(),
                                  .y = {},
                                  .gamma = on_g.view(),
                                  .beta = {},
                                  .mean = mean,
                                  .inverse_stddev = inverse.view(),
                                  .grad_x = grad_x.view(),
                                  .grad_gamma = grad_gamma.view(),
                                  .grad_beta = if_beta(grad_beta)});
  const double rows_error = over(rows) * error;
  expect_near(grad_x, wanted.x, epsilon(), 4 * error, "grad_x");
  expect_near(grad_gamma, wanted.gamma, 0, 4 * rows_error, "grad_gamma");
  if (form.has_beta) expect_near(grad_beta, wanted.beta, 0, rows_error, "grad_beta");

  // From the output, which the type has rounded: x_hat is off by u |y| / gamma.
  const double inverted = 4 * error + 2 * 6 * epsilon();
  layer_norm_backward(context(), {.kind = form.kind,
                                  .grad_y = on_grad.view(),
                                  .x = {},
                                  .y = y.view(),
                                  .gamma = on_g.view(),
                                  .beta = if_beta(on_b),
                                  .mean = {},
                                  .inverse_stddev = inverse.view(),
                                  .grad_x = grad_x.view(),
                                  .grad_gamma = grad_gamma.view(),
                                  .grad_beta = if_beta(grad_beta)});
  expect_near(grad_x, wanted.x, epsilon(), 3 * inverted, "grad_x, inverted");
  Matrix twice = wanted.gamma;  // gradients of parameters are added to
  for (double& value : twice.data) value *= 2;
  expect_near(grad_gamma, twice, 0, 3 * over(rows) * inverted, "both grad_gamma");
}

TEST_P(LayerNormTest, GammaZeroInvertsToZero) {
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

ONEBIT_ON_EVERY_BACKEND(LayerNormTest);

}  // namespace
}  // namespace onebit::ops
