#pragma once

#include "onebit/ground/base/encoder_choices.h"
#include "tests/reference/matrix.h"

namespace onebit::reference {

struct Norm {
  Matrix y, x_hat, mean, inverse_stddev;  // [rows, hidden] twice, [rows, 1] twice
};

// The mean is 0 for kRms.
inline Norm layer_norm(const Matrix& x, const Matrix& gamma, const Matrix& beta, double epsilon,
                       NormKind kind = NormKind::kLayer) {
  Norm norm{x, x, Matrix(x.rows, 1), Matrix(x.rows, 1)};
  const double hidden = static_cast<double>(x.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < x.columns; ++j) {
      if (kind == NormKind::kLayer) mean += x(i, j) / hidden;
    }
    for (int64_t j = 0; j < x.columns; ++j)
      variance += (x(i, j) - mean) * (x(i, j) - mean) / hidden;
    norm.mean(i, 0) = mean;
    norm.inverse_stddev(i, 0) = 1 / std::sqrt(variance + epsilon);
    for (int64_t j = 0; j < x.columns; ++j) {
      norm.x_hat(i, j) = (x(i, j) - mean) * norm.inverse_stddev(i, 0);
      norm.y(i, j) = norm.x_hat(i, j) * gamma(0, j) + beta(0, j);
    }
  }
  return norm;
}

struct NormGradients {
  Matrix x, gamma, beta;
};

inline NormGradients layer_norm_backward(const Matrix& grad_y, const Norm& norm,
                                         const Matrix& gamma, NormKind kind = NormKind::kLayer) {
  NormGradients grad{grad_y, Matrix(1, grad_y.columns), Matrix(1, grad_y.columns)};
  const double hidden = static_cast<double>(grad_y.columns);
  for (int64_t i = 0; i < grad_y.rows; ++i) {
    double mean = 0, product = 0;
    for (int64_t j = 0; j < grad_y.columns; ++j) {
      const double scaled = grad_y(i, j) * gamma(0, j);
      if (kind == NormKind::kLayer) mean += scaled / hidden;
      product += scaled * norm.x_hat(i, j) / hidden;
      grad.gamma(0, j) += grad_y(i, j) * norm.x_hat(i, j);
      grad.beta(0, j) += grad_y(i, j);
    }
    for (int64_t j = 0; j < grad_y.columns; ++j) {
      grad.x(i, j) = norm.inverse_stddev(i, 0) *
                     (grad_y(i, j) * gamma(0, j) - mean - norm.x_hat(i, j) * product);
    }
  }
  return grad;
}

}  // namespace onebit::reference
