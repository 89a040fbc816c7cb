#include "onebit/math/ops/losses.h"

#include "tests/ops/backend_test.h"
#include "tests/reference/finite_difference.h"
#include "tests/reference/label_loss.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class LabelLossTest : public BackendTest {
 protected:
  // Compares losses and gradient with term(logit, target, column) and its central differences.
  template <typename Term>
  void compare(LabelLossKind kind, const Matrix& logits, const Matrix& targets,
               const std::vector<float>& weights, const Term& term) {
    const int64_t rows = logits.rows, columns = logits.columns;
    const Tensor on_logits = upload(logits);
    const Tensor on_targets = upload(targets, DType::kF32, {rows, columns});
    const Tensor on_weights = weights.empty() ? Tensor() : upload_values(weights, {columns});
    const Tensor losses = zeros_f32({rows});
    const double scale = 0.75;
    const auto run = [&](bool write_gradient) {
      label_loss(context(), {.kind = kind,
                             .logits = on_logits.view(),
                             .targets = on_targets.view(),
                             .positive_weights = weights.empty() ? ConstView() : on_weights.view(),
                             .write_gradient = write_gradient,
                             .gradient_scale = static_cast<float>(scale),
                             .losses = losses.view()});
    };
    Matrix wanted(rows, 1);
    wanted.data = reference::label_losses(logits, targets, term);
    run(false);
    expect_near(losses, wanted, 0x1p-23, 0, "losses");  // f64 rounded once
    expect_near(on_logits, rounded(logits, dtype()), 0, 0, "logits are kept");
    run(true);
    expect_near(losses, wanted, 0x1p-23, 0, "losses beside the gradient");
    Matrix point = logits;
    Matrix gradient = reference::finite_difference(point, [&] {
      double sum = 0;
      for (const double loss : reference::label_losses(point, targets, term)) sum += loss;
      return sum;
    });
    for (double& value : gradient.data) value *= scale;
    // The differences of f64 losses of together at most 600 by steps of 1e-5, the steps' square,
    // and half the last place of f16's smallest numbers.
    const double absolute = 600 * 0x1p-52 / 1e-5 + 1e-10 + 0x1p-25;
    expect_near(on_logits, gradient, epsilon(), absolute, "gradient");
  }

  Matrix flags(int64_t rows, int64_t columns) {
    Matrix targets(rows, columns);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) targets(i, j) = (i * 7 + j * 3) % 5 < 2 ? 1 : 0;
    }
    return targets;
  }
};

TEST_P(LabelLossTest, Sigmoid) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {7, 65}}) {
    SCOPED_TRACE(columns);
    Matrix logits = random(rows, columns, 1, 4);
    logits(0, 0) = -80;  // no overflow, no lost tail
    const Matrix targets = flags(rows, columns);
    compare(LabelLossKind::kSigmoid, logits, targets, {},
            [](double x, double t, int64_t) { return reference::sigmoid_loss(x, t, 1); });
    std::vector<float> weights;
    for (int64_t j = 0; j < columns; ++j) weights.push_back(0.25f * static_cast<float>(1 + j % 7));
    compare(LabelLossKind::kSigmoid, logits, targets, weights, [&](double x, double t, int64_t j) {
      return reference::sigmoid_loss(x, t, double{weights[static_cast<size_t>(j)]});
    });
  }
}

TEST_P(LabelLossTest, Squared) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4, 1}, {3, 2}}) {
    SCOPED_TRACE(columns);
    compare(LabelLossKind::kSquared, random(rows, columns, 2, 4), random_f32(rows, columns, 3), {},
            [](double x, double t, int64_t) { return reference::squared_loss(x, t); });
  }
}

ONEBIT_ON_EVERY_BACKEND(LabelLossTest);

TEST(LabelLossErrors, NanIsNotHidden) {
  Context context = Context::cpu(1);
  for (const LabelLossKind kind : {LabelLossKind::kSigmoid, LabelLossKind::kSquared}) {
    float logits[] = {1, std::nanf("")}, losses[2];
    const float targets[] = {0, 1};
    label_loss(context, {.kind = kind,
                         .logits = View::of(logits, {2, 1}),
                         .targets = ConstView::of(targets, {2, 1}),
                         .positive_weights = {},
                         .write_gradient = true,
                         .gradient_scale = 1,
                         .losses = View::of(losses, {2})});
    EXPECT_FALSE(std::isnan(losses[0]));
    EXPECT_TRUE(std::isnan(losses[1]));
    EXPECT_TRUE(std::isnan(logits[1]));
  }
}

TEST(LabelLossErrors, WeightsBelongToTheSigmoidLoss) {
  Context context = Context::cpu(1);
  float logits[] = {1}, losses[1];
  const float one[] = {1};
  EXPECT_THROW(label_loss(context, {.kind = LabelLossKind::kSquared,
                                    .logits = View::of(logits, {1, 1}),
                                    .targets = ConstView::of(one, {1, 1}),
                                    .positive_weights = ConstView::of(one, {1}),
                                    .write_gradient = true,
                                    .gradient_scale = 1,
                                    .losses = View::of(losses, {1})}),
               Error);
}

}  // namespace
}  // namespace onebit::ops
