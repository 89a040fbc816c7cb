#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/matrix.h"

namespace onebit::reference {

struct CrossEntropy {
  std::vector<double> losses;
  Matrix gradient;  // of the sum of the losses
};

// Rows with target -1 are ignored. Columns from `classes` on are padding.
inline CrossEntropy cross_entropy(const Matrix& logits, int64_t classes,
                                  const std::vector<int32_t>& targets) {
  CrossEntropy result{std::vector<double>(size_t(logits.rows), 0.0),
                      Matrix(logits.rows, logits.columns)};
  for (int64_t i = 0; i < logits.rows; ++i) {
    const int32_t target = targets[size_t(i)];
    if (target < 0) continue;
    double maximum = logits(i, 0), sum = 0;
    for (int64_t j = 1; j < classes; ++j) maximum = std::max(maximum, logits(i, j));
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(logits(i, j) - maximum);
    result.losses[size_t(i)] = maximum + std::log(sum) - logits(i, target);
    for (int64_t j = 0; j < classes; ++j) {
      result.gradient(i, j) = std::exp(logits(i, j) - maximum) / sum - (j == target ? 1 : 0);
    }
  }
  return result;
}

}  // namespace onebit::reference
