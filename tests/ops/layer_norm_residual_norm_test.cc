#include "onebit/math/ops/layer_norm.h"

#include "tests/ops/norm_fixture.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

struct ResidualCase {
  double probability;
  bool keeps_sum, extra;
  float factor = 1;
};

class ResidualNormTest : public NormTest {
 protected:
  void expect_reference(const NormForm& form, int64_t rows, int64_t hidden, const ResidualCase& c);
};

Matrix scaled(Matrix x, double factor) {
  for (double& value : x.data) value *= factor;
  return x;
}

TEST_P(ResidualNormTest, ForwardAndBackward) {
  Combinations combinations;
  for (const NormForm& form : kNormForms) {
    for (const auto& [rows, hidden] : kNormSizes) {
      for (const ResidualCase& c :
           {ResidualCase{0, true, false}, ResidualCase{0.1, true, true},
            ResidualCase{0.3, false, true}, ResidualCase{0, true, true, 1.6f},
            ResidualCase{0.1, false, true, 1.3f}}) {
        SCOPED_TRACE(testing::Message() << form << ", " << rows << " x " << hidden << " p "
                                        << c.probability << " factor " << c.factor);
        if (combinations.next()) expect_reference(form, rows, hidden, c);
      }
    }
  }
}

// What is left out is neither read nor written.
void ResidualNormTest::expect_reference(const NormForm& form, int64_t rows, int64_t hidden,
                                        const ResidualCase& c) {
  const auto drop = rule(c.probability, rows);
  const Matrix residual = random(rows, hidden, 1), x = random(rows, hidden, 2);
  const Matrix g = gamma(hidden), b = beta(form, hidden);
  const Matrix sums = sum(residual, scaled(drop.apply(x), double{c.factor}));
  const reference::Norm norm = reference::layer_norm(sums, g, b, kEpsilon, form.kind);
  const Tensor on_residual = upload(residual), on_x = upload(x);
  const Tensor on_g = upload_vector(g), on_b = upload_vector(b), kept = zeros({rows, hidden});
  const Tensor y = zeros({rows, hidden}), means = zeros_f32({rows}), inverse = zeros_f32({rows});
  const View mean = form.kind == NormKind::kLayer ? means.view() : View();
  const auto if_beta = [&](const Tensor& tensor) { return form.has_beta ? tensor.view() : View(); };
  residual_norm(context(), {.kind = form.kind,
                            .residual = on_residual.view(),
                            .x = on_x.view(),
                            .dropout = dropout(drop),
                            .factor = c.factor,
                            .gamma = on_g.view(),
                            .beta = if_beta(on_b),
                            .epsilon = kEpsilon,
                            .sum = c.keeps_sum ? kept.view() : View{},
                            .y = y.view(),
                            .mean = mean,
                            .inverse_stddev = inverse.view()});
  const double error = arithmetic(hidden);
  expect_near(y, norm.y, epsilon(), error, "y");
  if (c.keeps_sum) expect_near(kept, sums, 2 * epsilon(), 0x1p-21, "sum");

  const Matrix grad_y = random(rows, hidden, 5), extra_y = random(rows, hidden, 6);
  const Matrix extra_sum = random(rows, hidden, 7);
  auto wanted =
      reference::layer_norm_backward(c.extra ? sum(grad_y, extra_y) : grad_y, norm, g, form.kind);
  if (c.extra) wanted.x = sum(wanted.x, extra_sum);
  const Matrix wanted_x = scaled(drop.apply(wanted.x), double{c.factor});
  const Tensor on_grad = upload(grad_y), on_extra_y = upload(extra_y);
  const Tensor on_extra_sum = upload(extra_sum);
  const Tensor grad_residual = zeros({rows, hidden}), grad_x = zeros({rows, hidden});
  const Tensor grad_gamma = zeros_f32({hidden}), grad_beta = zeros_f32({hidden});
  const Tensor grad_bias = zeros_f32({hidden});
  residual_norm_backward(context(), {.kind = form.kind,
                                     .grad_y = on_grad.view(),
                                     .grad_y_extra = c.extra ? on_extra_y.view() : View{},
                                     .grad_sum_extra = c.extra ? on_extra_sum.view() : View{},
                                     .sum = c.keeps_sum ? kept.view() : View{},
                                     .y = y.view(),
                                     .gamma = on_g.view(),
                                     .beta = if_beta(on_b),
                                     .mean = mean,
                                     .inverse_stddev = inverse.view(),
                                     .dropout = dropout(drop),
                                     .factor = c.factor,
                                     .grad_residual = grad_residual.view(),
                                     .grad_x = grad_x.view(),
                                     .grad_gamma = grad_gamma.view(),
                                     .grad_beta = if_beta(grad_beta),
                                     .grad_bias = grad_bias.view()});
  // The saved sum or output was rounded: x_hat is off by u |y|, gradients by a few times that.
  const double saved = 8 * error + 2 * 3 * 8 * epsilon();
  const double rows_error = over(rows) * saved;
  expect_near(grad_residual, wanted.x, epsilon(), saved, "grad_residual");
  expect_near(grad_x, wanted_x, epsilon(), 2 * saved, "grad_x");
  expect_near(grad_gamma, wanted.gamma, 0, rows_error, "grad_gamma");
  if (form.has_beta) expect_near(grad_beta, wanted.beta, 0, rows_error, "grad_beta");
  expect_near(grad_bias, column_sum(wanted_x), 0, 2 * rows_error, "grad_bias");
}

TEST_P(ResidualNormTest, GradientsMayReplaceTheirInputs) {
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

ONEBIT_ON_EVERY_BACKEND(ResidualNormTest);

}  // namespace
}  // namespace onebit::ops
