#include "onebit/apps/embed/encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/reference/finite_difference.h"

namespace onebit::embed {
namespace {

using reference::Matrix;

TEST(UnitVector, HasLengthOneAndItsGradientTurnsItAlone) {
  Matrix x(1, 5);
  x.data = {3, -4, 0.5, 0, 12};
  const std::vector<float> vector(x.data.begin(), x.data.end());
  const std::vector<float> weights = {1, 2, -3, 4, 0.25f};
  std::vector<float> unit(5), grad(5);
  const float length = to_unit_length(vector.data(), 5, unit.data());
  EXPECT_NEAR(length, std::sqrt(169.25), 1e-6);
  double along = 0;
  for (size_t i = 0; i < 5; ++i) along += double{unit[i]} * double{unit[i]};
  EXPECT_NEAR(along, 1, 1e-6);
  to_unit_length_backward({.grad_unit = weights.data(),
                           .unit = unit.data(),
                           .length = length,
                           .hidden = 5,
                           .grad = grad.data()});
  const Matrix wanted = reference::finite_difference(x, [&] {
    double sum = 0, square = 0;
    for (size_t i = 0; i < 5; ++i) {
      sum += double{weights[i]} * x.data[i];
      square += x.data[i] * x.data[i];
    }
    return sum / std::sqrt(square);
  });
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(double{grad[i]}, wanted.data[i], 1e-6) << i;
}

TEST(UnitVector, ZerosStayZerosAndNanStaysNan) {
  const std::vector<float> zeros(4, 0);
  std::vector<float> unit(4, 7);
  EXPECT_EQ(to_unit_length(zeros.data(), 4, unit.data()), 1e-12f);
  EXPECT_EQ(unit, zeros);
  const std::vector<float> bad = {1, std::nanf("")};
  EXPECT_TRUE(std::isnan(to_unit_length(bad.data(), 2, unit.data())));
  EXPECT_TRUE(std::isnan(unit[0]));
}

}  // namespace
}  // namespace onebit::embed
