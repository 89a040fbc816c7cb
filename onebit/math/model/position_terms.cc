#include "onebit/math/model/position_terms.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/rotary.h"

namespace onebit::model {

int64_t score_bucket(int64_t distance, int64_t buckets, int64_t farthest) {
  const int64_t half = buckets / 2, near = half / 2;
  const int64_t first = distance > 0 ? half : 0, away = std::abs(distance);
  if (away < near) return first + away;
  // transformers computes this in f32.
  const auto apart = static_cast<float>(near);
  const auto range =
      static_cast<float>(std::log(static_cast<double>(farthest) / static_cast<double>(near)));
  const float share = std::log(static_cast<float>(away) / apart) / range;
  const auto further = static_cast<int64_t>(share * static_cast<float>(half - near));
  return first + std::min(near + further, half - 1);
}

PositionTerms::PositionTerms(const EncoderConfig& config, ParameterTable& table)
    : config_(config), table_(&table) {
  if (config.choices.score_buckets == 0) return;
  buckets_ = table.add({.name = "bert.encoder.relative_attention_bias.weight",
                        .shape = {config.choices.score_buckets, config.heads},
                        .init = InitialValue::kNormal,
                        .init_stddev = config.initializer_range,
                        .decay = true,
                        .lookup = true});
}

void PositionTerms::reserve(MemoryPlan& memory, bool training) {
  const EncoderChoices& choices = config_.choices;
  const int64_t positions = config_.max_positions, heads = config_.heads;
  const auto turns = [&](double theta) {
    if (theta == 0) return Tensor();
    Tensor kept =
        memory.reserve(MemoryKind::kScratch, DType::kF32, {positions, config_.head_size()});
    if (kept.empty()) return kept;
    copy(kept.view(), ops::rotary_turns(Device{}, theta, positions, config_.head_size()).view());
    return kept;
  };
  turns_ = turns(choices.rotary_theta);
  window_turns_ = choices.full_attention_every > 1 ? turns(choices.window_theta) : Tensor();
  if (choices.score_buckets == 0) return;
  const int64_t columns = 2 * positions - 1;
  const auto scratch = [&](int64_t rows, int64_t width) {
    return memory.reserve(MemoryKind::kScratch, DType::kF32, {rows, width});
  };
  is_in_bucket_ = scratch(choices.score_buckets, columns);
  score_bias_ = scratch(heads, columns);
  grad_score_bias_ = training ? scratch(heads, columns) : Tensor();
  grad_buckets_ = training ? scratch(choices.score_buckets, heads) : Tensor();
  if (is_in_bucket_.empty()) return;
  const Tensor ones = Tensor::zeros(Device{}, DType::kF32, is_in_bucket_.shape());
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t bucket =
        score_bucket(column - (positions - 1), choices.score_buckets, choices.score_distance);
    ones.data<float>()[bucket * columns + column] = 1;
  }
  copy(is_in_bucket_.view(), ones.view());
}

ConstView PositionTerms::turns(int64_t layer) const {
  const bool is_full = config_.choices.full_attention(layer);
  return rows_of(is_full ? turns_ : window_turns_, config_.max_positions);
}

int64_t PositionTerms::window(int64_t layer) const {
  return config_.choices.full_attention(layer) ? -1 : config_.choices.window;
}

// A product with is_in_bucket_ selects the bucket of each distance on any device.
void PositionTerms::forward(Context& context) const {
  if (buckets_ == kNoParameter) return;
  ops::linear_backward_weight(context, {.grad_y = table_->value(buckets_),
                                        .x = is_in_bucket_.view(),
                                        .grad_weight = score_bias_.view(),
                                        .overwrite_weight = true,
                                        .grad_bias = {}});
}

void PositionTerms::clear_gradient(Context& context) const {
  if (buckets_ != kNoParameter) ops::fill(context, grad_score_bias_.view(), 0);
}

void PositionTerms::backward(Context& context) const {
  if (buckets_ == kNoParameter) return;
  ops::linear(context, {.x = is_in_bucket_.view(),
                        .weight = grad_score_bias_.view(),
                        .bias = {},
                        .y = grad_buckets_.view()});
  ops::add(context, {.x = grad_buckets_.view(), .y = table_->gradient(buckets_)});
}

}  // namespace onebit::model
