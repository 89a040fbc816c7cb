// What a model's outputs say: probabilities, and the labels or numbers decided on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/classify/labels.h"

namespace onebit::classify {

// Of single labels the softmax, of several the sigmoid of each; of numbers the outputs.
std::vector<double> probabilities(Problem problem, std::span<const float> outputs);

// Labels whose probability is above the threshold.
std::vector<int32_t> present_labels(std::span<const float> outputs, double threshold);

// Of one example, as PyTorch computes it: cross-entropy, the mean of the sigmoid cross-entropies,
// the mean squared error; without weights.
double loss_of(const Targets& targets, int64_t example, std::span<const float> outputs);

}  // namespace onebit::classify
