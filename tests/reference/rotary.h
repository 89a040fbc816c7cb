#pragma once

#include <cmath>
#include <vector>

#include "tests/reference/matrix.h"

namespace onebit::reference {

// Queries and keys of qkv [rows, 3 * hidden], turned by `sign` times the angles of their positions.
inline Matrix rotary(Matrix qkv, const std::vector<int32_t>& positions, int64_t heads, double theta,
                     double sign = 1) {
  const int64_t size = qkv.columns / 3 / heads;
  for (int64_t row = 0; row < qkv.rows; ++row) {
    for (int64_t head = 0; head < 2 * heads; ++head) {
      for (int64_t j = 0; j < size / 2; ++j) {
        const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(size);
        const double angle = sign * positions[size_t(row)] * std::pow(theta, exponent);
        double& first = qkv(row, head * size + j);
        double& second = qkv(row, head * size + size / 2 + j);
        const double x = first, y = second;
        first = x * std::cos(angle) - y * std::sin(angle);
        second = y * std::cos(angle) + x * std::sin(angle);
      }
    }
  }
  return qkv;
}

}  // namespace onebit::reference
