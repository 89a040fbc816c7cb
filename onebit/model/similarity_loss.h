// The loss of pairs of texts whose similarity is known (sentence-transformers'
// CosineSimilarityLoss): the squared difference of the cosine of their vectors and the score.
#pragma once

#include <cstdint>

#include "onebit/tensor/view.h"

namespace onebit::model {

struct SimilarityLoss {
  ConstView vectors;      // f32 [2 * pairs, hidden] on the CPU, the texts of a pair together
  ConstView scores;       // f32 [pairs] on the CPU
  double gradient_scale;  // of every pair's loss
  View gradients;         // f32 [2 * pairs, hidden]  overwritten
};
// Returns the sum of the losses. Sums f64.
double similarity_loss(const SimilarityLoss& call);

}  // namespace onebit::model
