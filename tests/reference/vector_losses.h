// Losses of vectors of texts, from their formulas.
#pragma once

#include <cmath>
#include <vector>

#include "tests/reference/matrix.h"

namespace onebit::reference {

inline double cosine(const Matrix& x, int64_t a, int64_t b) {
  double product = 0, length_a = 0, length_b = 0;
  for (int64_t j = 0; j < x.columns; ++j) {
    product += x(a, j) * x(b, j);
    length_a += x(a, j) * x(a, j);
    length_b += x(b, j) * x(b, j);
  }
  return product / std::sqrt(length_a * length_b);
}

// Rows are the texts of examples, `parts` each: -log softmax of the anchor's similarities to all
// positives and negatives, at its own positive. Returns one loss per example.
inline std::vector<double> ranking_losses(const Matrix& x, int64_t parts, double scale) {
  const int64_t examples = x.rows / parts;
  std::vector<double> losses;
  for (int64_t i = 0; i < examples; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < examples; ++j) {
      for (int64_t part = 1; part < parts; ++part) {
        sum += std::exp(scale * cosine(x, i * parts, j * parts + part));
      }
    }
    losses.push_back(std::log(sum) - scale * cosine(x, i * parts, i * parts + 1));
  }
  return losses;
}

// Rows are the texts of pairs.
inline std::vector<double> similarity_losses(const Matrix& x, const std::vector<float>& scores) {
  std::vector<double> losses;
  for (size_t pair = 0; pair < scores.size(); ++pair) {
    const auto row = static_cast<int64_t>(2 * pair);
    losses.push_back(std::pow(cosine(x, row, row + 1) - double{scores[pair]}, 2));
  }
  return losses;
}

inline double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace onebit::reference
