// What the outputs of a classifier say of one item: probabilities, the class decided on, the loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onebit::metrics {

std::vector<double> softmax(std::span<const float> outputs);

// The first of the largest.
int32_t best_class(std::span<const float> outputs);

// -log softmax(outputs)[target].
double cross_entropy(std::span<const float> outputs, int32_t target);

}  // namespace onebit::metrics
