// The matrix type of the reference implementations: doubles.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace onebit::reference {

struct Matrix {
  Matrix() = default;
  Matrix(int64_t row_count, int64_t column_count)
      : rows(row_count), columns(column_count), data(size_t(row_count * column_count), 0.0) {}

  double& operator()(int64_t row, int64_t column) { return data[size_t(row * columns + column)]; }
  double operator()(int64_t row, int64_t column) const {
    return data[size_t(row * columns + column)];
  }
  bool empty() const { return data.empty(); }

  int64_t rows = 0, columns = 0;
  std::vector<double> data;
};

inline Matrix transposed(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) y(j, i) = x(i, j);
  }
  return y;
}

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t p = 0; p < a.columns; ++p) {
      for (int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, p) * b(p, j);
    }
  }
  return c;
}

inline Matrix sum(const Matrix& a, const Matrix& b) {
  Matrix c = a;
  for (size_t i = 0; i < c.data.size(); ++i) c.data[i] += b.data[i];
  return c;
}

// [1, columns]
inline Matrix column_sum(const Matrix& x) {
  Matrix y(1, x.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) y(0, j) += x(i, j);
  }
  return y;
}

inline Matrix absolute(Matrix x) {
  for (double& value : x.data) value = std::abs(value);
  return x;
}

inline double largest(const Matrix& x) {
  double result = 0;
  for (const double value : x.data) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace onebit::reference
