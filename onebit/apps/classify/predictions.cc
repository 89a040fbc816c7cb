#include "onebit/apps/classify/predictions.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/metrics/prediction_scores.h"

namespace onebit::classify {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double column_loss(Problem problem, double output, double target) {
  if (problem == Problem::kRegression) return (output - target) * (output - target);
  return std::max(output, 0.0) - output * target + std::log1p(std::exp(-std::abs(output)));
}

}  // namespace

std::vector<double> probabilities(Problem problem, std::span<const float> outputs) {
  if (problem == Problem::kSingleLabel) return metrics::softmax(outputs);
  std::vector<double> result(outputs.begin(), outputs.end());
  if (problem == Problem::kMultiLabel) {
    for (double& value : result) value = sigmoid(value);
  }
  return result;
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
    return metrics::cross_entropy(outputs, targets.classes[index]);
  }
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    sum += column_loss(targets.problem, double{outputs[i]},
                       double{targets.values[index * outputs.size() + i]});
  }
  return sum / static_cast<double>(outputs.size());
}

}  // namespace onebit::classify
