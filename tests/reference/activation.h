#pragma once

#include <cmath>
#include <numbers>

#include "onebit/math/ops/activation.h"
#include "tests/reference/matrix.h"

namespace onebit::reference {

inline double activation(ops::ActivationKind kind, double x) {
  switch (kind) {
    case ops::ActivationKind::kGeluErf:
      return x / 2 * std::erfc(-x / std::numbers::sqrt2);
    case ops::ActivationKind::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case ops::ActivationKind::kRelu:
      return x > 0 ? x : 0;
    case ops::ActivationKind::kSwish:
      return x / (1 + std::exp(-x));
    case ops::ActivationKind::kTanh:
      return std::tanh(x);
  }
  return 0;
}

// The derivative at x.
inline double activation_slope(ops::ActivationKind kind, double x) {
  switch (kind) {
    case ops::ActivationKind::kGeluErf:
      return std::erfc(-x / std::numbers::sqrt2) / 2 +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case ops::ActivationKind::kGeluTanh: {
      const double root = std::sqrt(2 / std::numbers::pi);
      const double t = std::tanh(root * (x + 0.044715 * x * x * x));
      return (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
    }
    case ops::ActivationKind::kRelu:
      return x > 0 ? 1 : 0;
    case ops::ActivationKind::kSwish: {
      const double s = 1 / (1 + std::exp(-x));
      return s + x * s * (1 - s);
    }
    case ops::ActivationKind::kTanh:
      return 1 - std::tanh(x) * std::tanh(x);
  }
  return 0;
}

}  // namespace onebit::reference
