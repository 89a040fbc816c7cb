// Interprets a model's outputs: probabilities, and the chosen labels or numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/apps/classify/labels.h"

namespace onebit::classify {

// The softmax for single labels, the sigmoid for several; for regression the outputs themselves.
std::vector<double> probabilities(Problem problem, std::span<const float> outputs);

// Labels whose probability is above the threshold.
std::vector<int32_t> present_labels(std::span<const float> outputs, double threshold);

// The loss of one example as PyTorch computes it: cross-entropy, the mean of the sigmoid
// cross-entropies, the mean squared error; without weights.
double loss_of(const Targets& targets, int64_t example, std::span<const float> outputs);

}  // namespace onebit::classify
