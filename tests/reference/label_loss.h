#pragma once

#include <cmath>
#include <vector>

#include "tests/reference/matrix.h"

namespace onebit::reference {

// Sigmoid cross-entropy of one logit by the definition, -w t log p - (1 - t) log(1 - p), in a form
// that remains accurate for p near 0 or 1.
inline double sigmoid_loss(double x, double target, double weight) {
  const double log_p = x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x));
  const double log_not_p = log_p - x;
  return -weight * target * log_p - (1 - target) * log_not_p;
}

inline double squared_loss(double x, double target) {
  return std::pow(x - target, 2);
}

// The mean of term(logit, target, column) over each row.
template <typename Term>
std::vector<double> label_losses(const Matrix& logits, const Matrix& targets, const Term& term) {
  std::vector<double> losses;
  for (int64_t i = 0; i < logits.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < logits.columns; ++j) sum += term(logits(i, j), targets(i, j), j);
    losses.push_back(sum / static_cast<double>(logits.columns));
  }
  return losses;
}

}  // namespace onebit::reference
