// What positions do inside attention, shared by all layers: rotary angles (ops/rotary.h), and
// learned biases of scores by distance (T5, arXiv 1910.10683; MPNet). A family may have neither.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/memory_plan.h"

namespace onebit::model {

// The row of the table of learned biases for a key `distance` tokens after its query. Half of the
// buckets belong to keys after the query. Near distances have a bucket each, further ones share one
// by their logarithm, and those beyond `farthest` share the last.
int64_t score_bucket(int64_t distance, int64_t buckets, int64_t farthest);

class PositionTerms {
 public:
  // Declares "bert.encoder.relative_attention_bias.weight", [buckets, heads], if there are buckets.
  PositionTerms(const EncoderConfig& config, ParameterTable& table);

  void reserve(MemoryPlan& memory, bool training);

  // ops::Rotary::turns of a layer. Empty without rotary positions.
  ConstView turns(int64_t layer) const;
  // ops::Attention::window of a layer.
  int64_t window(int64_t layer) const;
  // f32 [heads, 2 * max_positions - 1] for attention. Empty without buckets.
  ConstView score_bias() const { return rows_of(score_bias_, config_.heads); }
  View grad_score_bias() const { return rows_of(grad_score_bias_, config_.heads); }

  // Before the layers' forward pass: computes score_bias().
  void forward(Context& context) const;
  // Before the layers' backward pass: clears grad_score_bias().
  void clear_gradient(Context& context) const;
  // After it: adds to the table's gradient.
  void backward(Context& context) const;

 private:
  EncoderConfig config_;
  ParameterTable* table_;
  int buckets_ = kNoParameter;
  Tensor turns_, window_turns_;          // f32 [positions, head_size]
  Tensor is_in_bucket_;                  // f32 [buckets, columns]: 1 for a distance in the bucket
  Tensor score_bias_, grad_score_bias_;  // f32 [heads, columns]
  Tensor grad_buckets_;                  // f32 [buckets, heads]
};

}  // namespace onebit::model
