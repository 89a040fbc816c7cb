#include "tests/muon/newton_schulz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/muon/singular.h"

namespace onebit::muon {
namespace {

// Applies the iterations to singular values. Singular vectors do not change.
std::vector<double> iterated(std::vector<double> singular) {
  double square = 0;
  for (const double value : singular) square += value * value;
  for (double& value : singular) {
    value /= std::sqrt(square);
    for (int i = 0; i < 5; ++i) {
      value = 3.4445 * value - 4.7750 * std::pow(value, 3) + 2.0315 * std::pow(value, 5);
    }
  }
  return singular;
}

void expect_iterated(size_t rows, size_t columns) {
  std::mt19937 random(7);
  const size_t side = std::min(rows, columns);
  const Matrix left = orthonormal_rows(side, rows, random);
  const Matrix right = orthonormal_rows(side, columns, random);
  std::vector<double> singular(side);
  // The singular values fall from 1 to 1/100 in equal ratios.
  for (size_t i = 0; i < side; ++i) {
    singular[i] = std::pow(0.01, static_cast<double>(i) / static_cast<double>(side - 1));
  }
  const std::vector<double> made = iterated(singular);
  EXPECT_GT(*std::ranges::min_element(made), 0.65);
  EXPECT_LT(*std::ranges::max_element(made), 1.25);

  const Matrix given = composed(left, singular, right), expected = composed(left, made, right);
  const Tensor matrix = to_f32(given);
  Context context = Context::cpu(1);
  NewtonSchulz(static_cast<int64_t>(rows), static_cast<int64_t>(columns))
      .run(context, matrix.view());
  // A sum of `side` products of f32, whose error the five iterations multiply by their slope at 0
  // at most where a singular value is small: 3.4445^5 = 485.
  EXPECT_LT(largest_difference(matrix.view(), expected),
            485 * std::sqrt(static_cast<double>(side)) * 6e-8);
}

TEST(NewtonSchulz, FollowsItsFormula) {
  expect_iterated(32, 32);
  expect_iterated(16, 64);
  expect_iterated(64, 16);
}

TEST(NewtonSchulz, ZerosStayZeros) {
  Tensor matrix = Tensor::zeros(Device{}, DType::kF32, {4, 8});
  Context context = Context::cpu(1);
  NewtonSchulz(4, 8).run(context, matrix.view());
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(matrix.data<float>()[i], 0);
}

}  // namespace
}  // namespace onebit::muon
