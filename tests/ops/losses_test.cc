#include "onebit/math/ops/losses.h"

#include "tests/ops/backend_test.h"
#include "tests/reference/cross_entropy.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class CrossEntropyTest : public BackendTest {};

Matrix as_column(const std::vector<double>& values) {
  Matrix result(static_cast<int64_t>(values.size()), 1);
  result.data = values;
  return result;
}

TEST_P(CrossEntropyTest, LossAndGradient) {
  struct Size {
    int64_t rows, classes, stride;
  };
  for (const auto& [rows, classes, stride] :
       {Size{4, 2, 2}, Size{9, 13, 16}, Size{6, 5003, 5008}}) {
    SCOPED_TRACE(classes);
    Matrix logits = random(rows, stride, 1, 4);
    for (int64_t i = 0; i < rows; ++i) {  // padding that would win if it were not ignored
      for (int64_t j = classes; j < stride; ++j) logits(i, j) = 100;
    }
    std::vector<int32_t> targets;
    for (int64_t i = 0; i < rows; ++i) targets.push_back(static_cast<int32_t>(i * 31 % classes));
    targets[1] = kIgnoredTarget;
    logits(2, targets[2]) = 16;                                // the largest: correct
    for (int64_t j = 0; j < classes; ++j) logits(3, j) -= 40;  // a zero would win
    logits(3, targets[3]) = -20;
    logits = rounded(logits, dtype());
    const auto wanted = reference::cross_entropy(logits, classes, targets);
    const Tensor on_logits = upload(logits), on_targets = upload_values(targets, {rows});
    const Tensor losses = zeros_f32({rows});
    const Tensor correct = upload_values(std::vector<uint8_t>(size_t(rows), 9), {rows});
    const auto run = [&, &classes = classes](bool write_gradient) {
      cross_entropy(context(), {.logits = on_logits.view(),
                                .classes = classes,
                                .targets = on_targets.view(),
                                .write_gradient = write_gradient,
                                .gradient_scale = 0.5f,
                                .losses = losses.view(),
                                .correct = correct.view()});
      // Sums of 2048 f32 numbers at a time. Logits up to 16 have an absolute rounding of 16 u.
      expect_near(losses, as_column(wanted.losses), 0x1p-23, (2048 + 64) * 0x1p-24, "losses");
    };
    run(false);
    expect_near(on_logits, rounded(logits, dtype()), 0, 0, "logits are kept");
    run(true);
    Matrix gradient = wanted.gradient;
    for (double& value : gradient.data) value *= 0.5;
    expect_near(on_logits, gradient, epsilon(), (2048 + 64) * 0x1p-24 * 0.5 + 0x1p-25, "gradient");
    const std::vector<char> flags = bytes(correct);
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t target = targets[size_t(i)];
      bool best = target >= 0;
      for (int64_t j = 0; best && j < classes; ++j) {
        best =
            logits(i, j) < logits(i, target) || (logits(i, j) == logits(i, target) && j >= target);
      }
      EXPECT_EQ(flags[size_t(i)], best ? 1 : 0) << i;
    }
    EXPECT_EQ(flags[2], 1);
    EXPECT_EQ(flags[3], 1);
  }
}

TEST_P(CrossEntropyTest, ClassWeightsMultiplyLossAndGradient) {
  constexpr int64_t kRows = 7, kClasses = 5;
  const Matrix logits = random(kRows, kClasses, 2, 2);
  const std::vector<int32_t> targets = {0, 1, 2, 3, 4, kIgnoredTarget, 1};
  const std::vector<float> weights = {1, 0.5f, 3, 0, 7.25f};
  auto wanted = reference::cross_entropy(logits, kClasses, targets);
  for (int64_t i = 0; i < kRows; ++i) {
    const int32_t target = targets[size_t(i)];
    const double weight = target < 0 ? 0 : double{weights[size_t(target)]};
    wanted.losses[size_t(i)] *= weight;
    for (int64_t j = 0; j < kClasses; ++j) wanted.gradient(i, j) *= weight;
  }
  const Tensor on_logits = upload(logits), on_targets = upload_values(targets, {kRows});
  const Tensor on_weights = upload_values(weights, {kClasses});
  const Tensor losses = zeros_f32({kRows});
  cross_entropy(context(), {.logits = on_logits.view(),
                            .classes = kClasses,
                            .targets = on_targets.view(),
                            .write_gradient = true,
                            .gradient_scale = 1,
                            .losses = losses.view(),
                            .correct = {},
                            .class_weights = on_weights.view()});
  // The tolerance is the one above, times the largest weight.
  const double absolute = 7.25 * 64 * 0x1p-24;
  expect_near(losses, as_column(wanted.losses), 0x1p-23, absolute, "losses");
  expect_near(on_logits, wanted.gradient, epsilon(), absolute, "gradient");
}

ONEBIT_ON_EVERY_BACKEND(CrossEntropyTest);

TEST(CrossEntropyErrors, BadTargetLeavesLogitsAlone) {
  Context context = Context::cpu(1);
  float logits[] = {1, 2, 3, 4}, losses[2];
  const int32_t targets[] = {0, 2};
  EXPECT_THROW(cross_entropy(context, {.logits = View::of(logits, {2, 2}),
                                       .classes = 2,
                                       .targets = ConstView::of(targets, {2}),
                                       .write_gradient = true,
                                       .gradient_scale = 1,
                                       .losses = View::of(losses, {2}),
                                       .correct = {}}),
               Error);
  EXPECT_EQ(logits[0], 1);
}

TEST(CrossEntropyErrors, NanIsNotHidden) {
  Context context = Context::cpu(1);
  float logits[9] = {}, losses[1];
  logits[5] = std::nanf("");
  const int32_t targets[] = {0};
  cross_entropy(context, {.logits = View::of(logits, {1, 9}),
                          .classes = 9,
                          .targets = ConstView::of(targets, {1}),
                          .write_gradient = true,
                          .gradient_scale = 1,
                          .losses = View::of(losses, {1}),
                          .correct = {}});
  EXPECT_TRUE(std::isnan(losses[0]));
  EXPECT_TRUE(std::isnan(logits[1]));
}

}  // namespace
}  // namespace onebit::ops
