// Compares the reference implementations with finite differences.
#include <gtest/gtest.h>

#include "onebit/ground/base/philox.h"
#include "tests/reference/activation.h"
#include "tests/reference/attention.h"
#include "tests/reference/cross_entropy.h"
#include "tests/reference/finite_difference.h"
#include "tests/reference/layer_norm.h"

namespace onebit::reference {
namespace {

// Central differences with h = 1e-5 are right to h^2 times a third derivative of order 1 to 10,
// plus 1e-16 / h of rounding.
constexpr double kTolerance = 1e-8;

Matrix random(int64_t rows, int64_t columns, uint64_t stream) {
  Matrix x(rows, columns);
  RandomSequence sequence(3, stream, 0);
  for (double& value : x.data) value = sequence.uniform() * 2 - 1;
  return x;
}

void expect_equal(const Matrix& a, const Matrix& b) {
  ASSERT_EQ(a.data.size(), b.data.size());
  for (size_t i = 0; i < a.data.size(); ++i) EXPECT_NEAR(a.data[i], b.data[i], kTolerance);
}

TEST(Reference, ActivationSlopes) {
  for (const auto kind :
       {ops::ActivationKind::kGeluErf, ops::ActivationKind::kGeluTanh, ops::ActivationKind::kRelu,
        ops::ActivationKind::kSwish, ops::ActivationKind::kTanh}) {
    for (double x = -3.05; x < 3; x += 0.1) {
      const double h = 1e-5;
      const double slope = (activation(kind, x + h) - activation(kind, x - h)) / (2 * h);
      EXPECT_NEAR(slope, activation_slope(kind, x), kTolerance) << x;
    }
  }
}

TEST(Reference, LayerNormBackward) {
  Matrix x = random(3, 5, 0), gamma = random(1, 5, 1), beta = random(1, 5, 2);
  const Matrix grad_y = random(3, 5, 3);
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    const auto norm = [&] { return layer_norm(x, gamma, beta, 1e-3, kind); };
    const auto loss = [&] { return inner(norm().y, grad_y); };
    const NormGradients grad = layer_norm_backward(grad_y, norm(), gamma, kind);
    expect_equal(grad.x, finite_difference(x, loss));
    expect_equal(grad.gamma, finite_difference(gamma, loss));
    expect_equal(grad.beta, finite_difference(beta, loss));
  }
}

TEST(Reference, AttentionBackward) {
  Matrix qkv = random(7, 3 * 4, 0);
  const std::vector<int32_t> starts = {0, 4, 5, 7};
  const DropoutRule dropout{0.3, 5, 1, {1, 2, 3, 4, 5, 6, 7}};
  Matrix score_bias = random(2, 9, 2);
  const Matrix grad_context = random(7, 4, 1);
  for (const Attention& attention :
       {Attention{qkv, starts, 2, dropout}, Attention{qkv, starts, 2, dropout, 1},
        Attention{qkv, starts, 2, dropout, -1, &score_bias}}) {
    const auto loss = [&] { return inner(attention.forward(), grad_context); };
    Matrix grad_bias(2, 9);
    expect_equal(attention.backward(grad_context, &grad_bias), finite_difference(qkv, loss));
    if (attention.score_bias != nullptr) {
      expect_equal(grad_bias, finite_difference(score_bias, loss));
    }
  }
}

TEST(Reference, CrossEntropyGradient) {
  Matrix logits = random(3, 6, 0);
  const std::vector<int32_t> targets = {2, -1, 4};
  const auto loss = [&] {
    double total = 0;
    for (const double value : cross_entropy(logits, 5, targets).losses) total += value;
    return total;
  };
  expect_equal(cross_entropy(logits, 5, targets).gradient, finite_difference(logits, loss));
}

}  // namespace
}  // namespace onebit::reference
