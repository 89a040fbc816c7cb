// LAMB of one tensor in double precision, from the formula.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace onebit::reference {

struct Lamb {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool epsilon_inside_root = false;
  double weight_decay = 0, learning_rate = 0;
  double min_ratio = 0.01, max_ratio = 10;
};

struct LambTensorState {
  std::vector<double> value, momentum, variance;
};

// One update. Scales momentum and variance by `factor1` and `factor2`. Returns the trust ratio.
inline double lamb_step(const Lamb& rule, LambTensorState& state,
                        const std::vector<double>& gradient, double factor1, double factor2) {
  std::vector<double> update(gradient.size());
  double value_square = 0, update_square = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    double& m = state.momentum[i];
    double& v = state.variance[i];
    m = rule.beta1 * m + (1 - rule.beta1) * gradient[i];
    v = rule.beta2 * v + (1 - rule.beta2) * gradient[i] * gradient[i];
    const double denominator = rule.epsilon_inside_root ? std::sqrt(factor2 * v + rule.epsilon)
                                                        : std::sqrt(factor2 * v) + rule.epsilon;
    update[i] = denominator == 0 ? 0 : factor1 * m / denominator;
    update[i] += rule.weight_decay * state.value[i];
    value_square += state.value[i] * state.value[i];
    update_square += update[i] * update[i];
  }
  double ratio = 1;
  if (value_square != 0 && update_square != 0) {
    ratio = std::clamp(std::sqrt(value_square / update_square), rule.min_ratio, rule.max_ratio);
  }
  for (size_t i = 0; i < gradient.size(); ++i) {
    state.value[i] -= rule.learning_rate * ratio * update[i];
  }
  return ratio;
}

}  // namespace onebit::reference
