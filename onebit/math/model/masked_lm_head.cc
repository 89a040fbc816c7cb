#include "onebit/math/model/masked_lm_head.h"

#include <algorithm>

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/layer_norm.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/losses.h"

namespace onebit::model {
namespace {

constexpr int64_t kLeastChunkRows = 1024, kTileRows = 128;
constexpr int64_t kChunkBytes = int64_t{256} << 20;

}  // namespace

MaskedLmHead::MaskedLmHead(const EncoderConfig& config, ParameterTable& table, int word_embeddings)
    : config_(config),
      table_(&table),
      word_(word_embeddings),
      bias_(table.add({.name = "cls.predictions.bias",
                       .shape = {config.vocab_size},
                       .storage_rows = config.stored_vocab_size()})),
      dense_(declare_linear(table, "cls.predictions.transform.dense", config.hidden_size,
                            config.hidden_size, config.initializer_range)),
      norm_(declare_norm(table, "cls.predictions.transform.LayerNorm", config.hidden_size)) {
  table.overwrite_gradient(word_);  // the embeddings' backward pass adds to it later
}

int64_t MaskedLmHead::most_chunk_rows(DeviceType device, DType compute, int64_t stored_vocab_size) {
  if (device == DeviceType::kCpu) return kLeastChunkRows;
  const int64_t rows = kChunkBytes / (stored_vocab_size * size_bytes_of(compute));
  return std::max(kLeastChunkRows, rows / kTileRows * kTileRows);
}

void MaskedLmHead::reserve(MemoryPlan& memory, int64_t masked, bool training, DType compute) {
  const int64_t hidden = config_.hidden_size;
  const auto reserve_hidden = [&] {
    return memory.reserve(MemoryKind::kHead, compute, {masked, hidden});
  };
  const auto reserve_f32 = [&] { return memory.reserve(MemoryKind::kHead, DType::kF32, {masked}); };
  pre_activation_ = reserve_hidden();
  activated_ = reserve_hidden();
  normed_ = reserve_hidden();
  grad_normed_ = training ? reserve_hidden() : Tensor();
  mean_ = training ? reserve_f32() : Tensor();
  inverse_stddev_ = training ? reserve_f32() : Tensor();
  const int64_t vocab = config_.stored_vocab_size();
  chunk_rows_ = std::min(masked, most_chunk_rows(memory.type(), compute, vocab));
  logits_ = memory.reserve(MemoryKind::kHead, compute, {chunk_rows_, vocab});
  losses_ = reserve_f32();
  correct_ = memory.reserve(MemoryKind::kHead, DType::kU8, {masked});
}

void MaskedLmHead::transform(Context& context, ConstView hidden) const {
  const int64_t rows = hidden.extent(0);
  ops::linear_activation(context, {.kind = kind_of(config_.choices.head_activation),
                                   .x = hidden,
                                   .weight = table_->compute_value(dense_.weight),
                                   .bias = bias_to_add(context, *table_, dense_.bias),
                                   .pre_activation = rows_of(pre_activation_, rows),
                                   .y = rows_of(activated_, rows)});
  ops::layer_norm(context, {.x = rows_of(activated_, rows),
                            .gamma = table_->value(norm_.gamma),
                            .beta = table_->value(norm_.beta),
                            .epsilon = static_cast<float>(config_.layer_norm_eps),
                            .y = rows_of(normed_, rows),
                            .mean = rows_of(mean_, rows),
                            .inverse_stddev = rows_of(inverse_stddev_, rows)});
}

void MaskedLmHead::transform_backward(Context& context, ConstView hidden, View grad_hidden) const {
  const PhaseSpan phase(context, kHeadsBackward);
  const int64_t rows = hidden.extent(0);
  const View grad = rows_of(grad_normed_, rows);
  ops::layer_norm_backward(context, {.grad_y = grad,
                                     .x = rows_of(activated_, rows),
                                     .gamma = table_->value(norm_.gamma),
                                     .mean = rows_of(mean_, rows),
                                     .inverse_stddev = rows_of(inverse_stddev_, rows),
                                     .grad_x = grad,
                                     .grad_gamma = table_->gradient(norm_.gamma),
                                     .grad_beta = table_->gradient(norm_.beta)});
  ops::activation_backward(context, {.kind = kind_of(config_.choices.head_activation),
                                     .grad_y = grad,
                                     .saved = rows_of(pre_activation_, rows),
                                     .grad_x = grad,
                                     .grad_bias = table_->gradient(dense_.bias)});
  ops::linear_backward_weight(context, weight_gradient(*table_, dense_.weight, grad, hidden));
  ops::linear_backward_input(
      context,
      {.grad_y = grad, .weight = table_->compute_value(dense_.weight), .grad_x = grad_hidden});
}

View MaskedLmHead::decode(Context& context, int64_t begin, int64_t end) const {
  const View logits = rows_of(logits_, end - begin);
  ops::linear(context, {.x = normed_.view().rows(begin, end),
                        .weight = table_->compute_value(word_),
                        .bias = bias_to_add(context, *table_, bias_),
                        .y = logits});
  return logits;
}

void MaskedLmHead::loss(Context& context, const Loss& call) const {
  const int64_t masked = call.hidden.extent(0);
  const bool training = !call.grad_hidden.empty();
  const PhaseSpan phase(context, kHeadsForward);
  transform(context, call.hidden);
  for (int64_t begin = 0; begin < masked; begin += chunk_rows_) {
    const int64_t end = std::min(masked, begin + chunk_rows_);
    const View logits = decode(context, begin, end);
    ops::cross_entropy(context, {.logits = logits,
                                 .classes = config_.vocab_size,
                                 .targets = call.targets.rows(begin, end),
                                 .write_gradient = training,
                                 .gradient_scale = call.gradient_scale,
                                 .losses = losses_.view().rows(begin, end),
                                 .correct = correct_.view().rows(begin, end)});
    if (!training) continue;
    const PhaseSpan backward(context, kHeadsBackward);
    ops::linear_backward_weight(
        context, weight_gradient(*table_, word_, logits, normed_.view().rows(begin, end),
                                 table_->gradient(bias_)));
    ops::linear_backward_input(context, {.grad_y = logits,
                                         .weight = table_->compute_value(word_),
                                         .grad_x = grad_normed_.view().rows(begin, end)});
  }
  if (training && masked > 0) transform_backward(context, call.hidden, call.grad_hidden);
}

void MaskedLmHead::predict(Context& context, ConstView hidden, View logits) const {
  const int64_t rows = hidden.extent(0), stored = config_.stored_vocab_size();
  transform(context, hidden);
  for (int64_t begin = 0; begin < rows; begin += chunk_rows_) {
    const int64_t end = std::min(rows, begin + chunk_rows_);
    const Tensor chunk = to_cpu_f32(decode(context, begin, end));
    for (int64_t row = begin; row < end; ++row) {
      const float* from = chunk.data<float>() + (row - begin) * stored;
      std::copy(from, from + config_.vocab_size, logits.data<float>() + row * config_.vocab_size);
    }
  }
}

}  // namespace onebit::model
