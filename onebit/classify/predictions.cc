#include "onebit/classify/predictions.h"

#include <algorithm>
#include <cmath>

namespace onebit::classify {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double log_sum_exp(std::span<const float> outputs) {
  const double most = double{*std::max_element(outputs.begin(), outputs.end())};
  double sum = 0;
  for (const float output : outputs) sum += std::exp(double{output} - most);
  return most + std::log(sum);
}

double column_loss(Problem problem, double output, double target) {
  if (problem == Problem::kRegression) return (output - target) * (output - target);
  return std::max(output, 0.0) - output * target + std::log1p(std::exp(-std::abs(output)));
}

}  // namespace

std::vector<double> probabilities(Problem problem, std::span<const float> outputs) {
  std::vector<double> result(outputs.begin(), outputs.end());
  if (problem == Problem::kSingleLabel) {
    const double most = *std::max_element(result.begin(), result.end());
    double sum = 0;
    for (double& value : result) sum += value = std::exp(value - most);
    for (double& value : result) value /= sum;
  } else if (problem == Problem::kMultiLabel) {
    for (double& value : result) value = sigmoid(value);
  }
  return result;
}

int32_t best_class(std::span<const float> outputs) {
  return static_cast<int32_t>(std::max_element(outputs.begin(), outputs.end()) - outputs.begin());
}

std::vector<int32_t> present_labels(std::span<const float> outputs, double threshold) {
  std::vector<int32_t> present;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (sigmoid(double{outputs[i]}) > threshold) present.push_back(static_cast<int32_t>(i));
  }
  return present;
}

double loss_of(const Targets& targets, int64_t example, std::span<const float> outputs) {
  const auto index = static_cast<size_t>(example);
  if (targets.problem == Problem::kSingleLabel) {
    const auto target = static_cast<size_t>(targets.classes[index]);
    return log_sum_exp(outputs) - double{outputs[target]};
  }
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    sum += column_loss(targets.problem, double{outputs[i]},
                       double{targets.values[index * outputs.size() + i]});
  }
  return sum / static_cast<double>(outputs.size());
}

}  // namespace onebit::classify
