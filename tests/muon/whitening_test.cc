#include "tests/muon/whitening.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/muon/singular.h"

namespace onebit::muon {
namespace {

// Values that fall from 1 to `least` in equal ratios, to the power `power`.
std::vector<double> spectrum(size_t count, double least, double power) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = std::pow(least, power * static_cast<double>(i) / static_cast<double>(count - 1));
  }
  return values;
}

TEST(Whitening, SquareRoots) {
  constexpr size_t kSide = 48;
  std::mt19937 random(3);
  const Matrix axes = orthonormal_rows(kSide, kSide, random);
  const auto power = [&](double exponent) {
    return composed(axes, spectrum(kSide, 1e-3, exponent), axes);
  };
  const Tensor root(Device{}, DType::kF32, {kSide, kSide});
  const Tensor inverse(Device{}, DType::kF32, {kSide, kSide});
  Context context = Context::cpu(1);
  square_roots(context, to_f32(power(1)).view(), root.view(), inverse.view());
  // f32 rounds M by 6e-8 of its norm, 2.7, which is 1.6e-4 of its smallest eigenvalue and half as
  // much of the inverse root of that, 32. In the other axes it is less.
  EXPECT_LT(largest_difference(root.view(), power(0.5)), 1e-3);
  EXPECT_LT(largest_difference(inverse.view(), power(-0.5)), 5e-3);
}

// Gradients left diag(spectrum) noise diag(spectrum) right become noise of one size in every
// direction, and come back.
TEST(Whitening, MakesSpectraFlat) {
  constexpr size_t kSide = 16;
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  const Matrix axes = orthonormal_rows(kSide, kSide, random);
  const Matrix factor = composed(axes, spectrum(kSide, 0.05, 1), axes);
  const auto gradient = [&] {
    Matrix noise(kSide, std::vector<double>(kSide)), half = noise, whole = noise;
    for (auto& row : noise) {
      for (double& element : row) element = normal(random);
    }
    for (size_t i = 0; i < kSide * kSide * kSide; ++i) {
      const size_t row = i / kSide / kSide, column = i / kSide % kSide, k = i % kSide;
      half[row][column] += factor[row][k] * noise[k][column];
    }
    for (size_t i = 0; i < kSide * kSide * kSide; ++i) {
      const size_t row = i / kSide / kSide, column = i / kSide % kSide, k = i % kSide;
      whole[row][column] += half[row][k] * factor[k][column];
    }
    return whole;
  };
  Context context = Context::cpu(1);
  Whitening whitening(kSide, kSide);
  for (int i = 0; i < 500; ++i) whitening.observe(context, to_f32(gradient()).view());
  whitening.refresh(context);

  // Returns, for y or for gradients, the mean square along each axis, largest over smallest.
  const auto spread = [&](bool white) {
    std::vector<double> squares(kSide);
    for (int i = 0; i < 200; ++i) {
      const Tensor y = to_f32(gradient());
      if (white) whitening.apply(context, y.view());
      for (size_t axis = 0; axis < kSide; ++axis) {
        for (size_t column = 0; column < kSide; ++column) {
          double along = 0;
          for (size_t row = 0; row < kSide; ++row) {
            along += axes[axis][row] * y.data<float>()[row * kSide + column];
          }
          squares[axis] += along * along;
        }
      }
    }
    return *std::ranges::max_element(squares) / *std::ranges::min_element(squares);
  };
  EXPECT_GT(spread(false), 100);
  EXPECT_LT(spread(true), 2);

  const Matrix one = gradient();
  const Tensor back = to_f32(one);
  whitening.apply(context, back.view());
  whitening.take_back(context, back.view());
  EXPECT_LT(largest_difference(back.view(), one), 1e-3);
}

}  // namespace
}  // namespace onebit::muon
