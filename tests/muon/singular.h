// Matrices with known singular vectors and values, in double precision.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "onebit/math/tensor/tensor.h"

namespace onebit::muon {

using Matrix = std::vector<std::vector<double>>;  // rows

// Returns `rows` orthonormal rows, by the Gram-Schmidt process.
inline Matrix orthonormal_rows(size_t rows, size_t columns, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Matrix made(rows, std::vector<double>(columns));
  for (size_t i = 0; i < rows; ++i) {
    for (double& element : made[i]) element = normal(random);
    // Twice, because one pass leaves rounding errors.
    for (size_t k = 0; k < 2 * i; ++k) {
      const std::vector<double>& other = made[k % i];
      double product = 0;
      for (size_t j = 0; j < columns; ++j) product += made[i][j] * other[j];
      for (size_t j = 0; j < columns; ++j) made[i][j] -= product * other[j];
    }
    double square = 0;
    for (const double element : made[i]) square += element * element;
    for (double& element : made[i]) element /= std::sqrt(square);
  }
  return made;
}

// sum over i of singular_i left_i right_i^T
inline Matrix composed(const Matrix& left, const std::vector<double>& singular,
                       const Matrix& right) {
  Matrix sum(left[0].size(), std::vector<double>(right[0].size()));
  for (size_t i = 0; i < singular.size(); ++i) {
    for (size_t row = 0; row < sum.size(); ++row) {
      for (size_t column = 0; column < sum[0].size(); ++column) {
        sum[row][column] += singular[i] * left[i][row] * right[i][column];
      }
    }
  }
  return sum;
}

inline Tensor to_f32(const Matrix& matrix) {
  const auto rows = static_cast<int64_t>(matrix.size());
  const auto columns = static_cast<int64_t>(matrix[0].size());
  Tensor tensor(Device{}, DType::kF32, {rows, columns});
  float* to = tensor.data<float>();
  for (const std::vector<double>& row : matrix) {
    for (const double element : row) *to++ = static_cast<float>(element);
  }
  return tensor;
}

inline double largest_difference(ConstView given, const Matrix& expected) {
  const float* from = given.data<float>();
  double largest = 0;
  for (const std::vector<double>& row : expected) {
    for (const double element : row) largest = std::fmax(largest, std::abs(*from++ - element));
  }
  return largest;
}

}  // namespace onebit::muon
