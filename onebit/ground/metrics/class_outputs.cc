#include "onebit/ground/metrics/class_outputs.h"

#include <algorithm>
#include <cmath>

namespace onebit::metrics {

std::vector<double> softmax(std::span<const float> outputs) {
  std::vector<double> result(outputs.begin(), outputs.end());
  const double most = *std::max_element(result.begin(), result.end());
  double sum = 0;
  for (double& value : result) sum += value = std::exp(value - most);
  for (double& value : result) value /= sum;
  return result;
}

int32_t best_class(std::span<const float> outputs) {
  return static_cast<int32_t>(std::max_element(outputs.begin(), outputs.end()) - outputs.begin());
}

double cross_entropy(std::span<const float> outputs, int32_t target) {
  const double most = double{*std::max_element(outputs.begin(), outputs.end())};
  double sum = 0;
  for (const float output : outputs) sum += std::exp(double{output} - most);
  return most + std::log(sum) - double{outputs[static_cast<size_t>(target)]};
}

}  // namespace onebit::metrics
