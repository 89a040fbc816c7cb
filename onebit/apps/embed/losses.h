// The losses by which vectors of texts are trained: of pairs with a score, and the ranking loss
// with in-batch negatives (Henderson et al., arXiv 1705.00652, and MultipleNegativesRankingLoss in
// sentence-transformers): among all positives and negatives of a batch, an anchor should be most
// similar to its own positive.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/math/tensor/view.h"

namespace onebit::embed {

// The loss for pairs of texts with known similarity (sentence-transformers' CosineSimilarityLoss):
// the squared difference between the cosine of their vectors and the score.
struct SimilarityLoss {
  ConstView vectors;      // f32 [2 * pairs, hidden] on the CPU, the texts of a pair adjacent
  ConstView scores;       // f32 [pairs] on the CPU
  double gradient_scale;  // for every pair's loss
  View gradients;         // f32 [2 * pairs, hidden]  overwritten
};
// Returns the sum of the losses, accumulated in f64.
double similarity_loss(const SimilarityLoss& call);

// For at most `examples` examples of `parts` texts each: the anchor, its positive and optionally
// negatives. The candidates are the positives and negatives of all examples. c_ij is the cosine of
// anchor i and candidate j:
//
//   loss_i = log(sum_j exp(scale c_ij)) - scale c_ii
class RankingLoss {
 public:
  RankingLoss(int64_t examples, int64_t parts, int64_t hidden, double scale);

  struct Call {
    // f32 [examples of this call * parts, hidden] on the CPU, the texts of an example adjacent
    ConstView vectors;
    double gradient_scale;  // for every example's loss
    Range own;              // the examples of this rank
    View gradients;         // f32 [own examples * parts, hidden]  overwritten
  };
  // Over own examples: the sum of their losses, and how many anchors are most similar to their own
  // positive.
  struct Result {
    double loss_sum = 0;
    int64_t correct = 0;
  };
  // The gradients belong to the losses of all examples, not only of own ones: ranks that pass the
  // vectors of all ranks sum up to the exact gradient. `host` is a CPU context.
  Result run(Context& host, const Call& call) const;

 private:
  int64_t examples_in(const Call& call) const { return call.vectors.extent(0) / parts_; }
  void normalize(Context& host, const Call& call) const;
  void own_gradients(Context& host, const Call& call) const;

  int64_t most_examples_, parts_, hidden_;
  double scale_;
  // Sized for `examples`. A call uses the beginning. Row part * examples + example: the anchors,
  // then the candidates, normalized to length 1.
  Tensor units_;       // f32 [examples * parts, hidden]
  Tensor grad_units_;  // f32 [examples * parts, hidden]
  Tensor lengths_;     // f32 [examples * parts], before normalization
  Tensor logits_;      // f32 [examples, examples * (parts - 1)]
  Tensor targets_;     // i32 [examples]
  Tensor losses_;      // f32 [examples]
  Tensor correct_;     // u8 [examples]
};

}  // namespace onebit::embed
