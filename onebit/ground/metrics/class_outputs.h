// A classifier's outputs for one item as probabilities, the predicted class, the loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onebit::metrics {

std::vector<double> softmax(std::span<const float> outputs);

// The index of the largest output, the first of equals.
int32_t best_class(std::span<const float> outputs);

// -log softmax(outputs)[target].
double cross_entropy(std::span<const float> outputs, int32_t target);

}  // namespace onebit::metrics
