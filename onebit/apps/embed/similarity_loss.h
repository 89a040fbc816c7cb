// The loss for pairs of texts with known similarity (sentence-transformers' CosineSimilarityLoss):
// the squared difference between the cosine of their vectors and the score.
#pragma once

#include <cstdint>

#include "onebit/math/tensor/view.h"

namespace onebit::embed {

struct SimilarityLoss {
  ConstView vectors;      // f32 [2 * pairs, hidden] on the CPU, the texts of a pair adjacent
  ConstView scores;       // f32 [pairs] on the CPU
  double gradient_scale;  // for every pair's loss
  View gradients;         // f32 [2 * pairs, hidden]  overwritten
};
// Returns the sum of the losses, accumulated in f64.
double similarity_loss(const SimilarityLoss& call);

}  // namespace onebit::embed
