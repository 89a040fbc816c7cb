// The gradient of a scalar function by central differences, with which every reference backward
// pass is compared.
#pragma once

#include <functional>

#include "tests/reference/matrix.h"

namespace onebit::reference {

// d f / d x for every element of x. f is called with x changed in one place at a time.
inline Matrix finite_difference(Matrix& x, const std::function<double()>& f, double h = 1e-5) {
  Matrix gradient(x.rows, x.columns);
  for (size_t i = 0; i < x.data.size(); ++i) {
    const double kept = x.data[i];
    x.data[i] = kept + h;
    const double above = f();
    x.data[i] = kept - h;
    const double below = f();
    x.data[i] = kept;
    gradient.data[i] = (above - below) / (2 * h);
  }
  return gradient;
}

// Sum of a * b: the scalar function whose gradient at y is `weights`.
inline double inner(const Matrix& a, const Matrix& b) {
  double total = 0;
  for (size_t i = 0; i < a.data.size(); ++i) total += a.data[i] * b.data[i];
  return total;
}

}  // namespace onebit::reference
