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

constexpr int64_t kMostCpuRows = 1024, kTileRows = 128;
constexpr int64_t kChunkBytes = int64_t{256} << 20;

}  // namespace

MaskedLmHead::MaskedLmHead(const EncoderConfig& config, ParameterTable& table, int word_embeddings)
    : config_(config), table_(&table), decoder_{.weight = word_embeddings} {
  const EncoderChoices& choices = config.choices;
  const int64_t width = choices.head_transform ? config.embedding_size() : config.hidden_size;
  if (!choices.tied) {
    decoder_.weight = table.add({.name = "cls.predictions.decoder.weight",
                                 .shape = {config.vocab_size, width},
                                 .init = InitialValue::kNormal,
                                 .init_stddev = config.initializer_range,
                                 .decay = true,
                                 .storage_rows = config.stored_vocab_size()});
  }
  if (choices.decoder_bias) {
    decoder_.bias = table.add({.name = "cls.predictions.bias",
                               .shape = {config.vocab_size},
                               .storage_rows = config.stored_vocab_size()});
  }
  if (choices.head_transform) {
    dense_ = declare_linear(table, "cls.predictions.transform.dense", width, config.hidden_size,
                            config.initializer_range, choices.head_dense_bias);
    norm_ =
        declare_norm(table, "cls.predictions.transform.LayerNorm", width, choices.head_norm_bias);
  }
  // The backward pass of tied embeddings adds to it later.
  table.overwrite_gradient(decoder_.weight);
}

int64_t MaskedLmHead::most_chunk_rows(DeviceType device, DType compute, int64_t stored_vocab_size) {
  const int64_t bytes_a_row = stored_vocab_size * size_bytes_of(compute);
  const int64_t rows = std::max(kTileRows, kChunkBytes / bytes_a_row / kTileRows * kTileRows);
  return device == DeviceType::kCpu ? std::min(kMostCpuRows, rows) : rows;
}

void MaskedLmHead::reserve(MemoryPlan& memory, int64_t masked, bool training, DType compute) {
  const bool transforms = config_.choices.head_transform;
  const auto reserve_transformed = [&](bool is_needed) {
    return transforms && is_needed
               ? memory.reserve(MemoryKind::kHead, compute, {masked, config_.embedding_size()})
               : Tensor();
  };
  const auto reserve_f32 = [&] { return memory.reserve(MemoryKind::kHead, DType::kF32, {masked}); };
  pre_activation_ = reserve_transformed(true);
  activated_ = reserve_transformed(true);
  normed_ = reserve_transformed(true);
  grad_normed_ = reserve_transformed(training);
  mean_ = training && transforms ? reserve_f32() : Tensor();
  inverse_stddev_ = training && transforms ? reserve_f32() : Tensor();
  const int64_t vocab = config_.stored_vocab_size();
  chunk_rows_ = std::min(masked, most_chunk_rows(memory.type(), compute, vocab));
  logits_ = memory.reserve(MemoryKind::kHead, compute, {chunk_rows_, vocab});
  losses_ = reserve_f32();
  correct_ = memory.reserve(MemoryKind::kHead, DType::kU8, {masked});
}

ConstView MaskedLmHead::transform(Context& context, ConstView hidden) const {
  if (!config_.choices.head_transform) return hidden;
  const int64_t rows = hidden.extent(0);
  ops::linear_activation(context, {.kind = kind_of(config_.choices.head_activation),
                                   .x = hidden,
                                   .weight = table_->compute_value(dense_.weight),
                                   .bias = bias_to_add(context, *table_, dense_.bias),
                                   .pre_activation = rows_of(pre_activation_, rows),
                                   .y = rows_of(activated_, rows)});
  ops::layer_norm(context, {.kind = config_.choices.norm,
                            .x = rows_of(activated_, rows),
                            .gamma = table_->value(norm_.gamma),
                            .beta = value_or_none(*table_, norm_.beta),
                            .epsilon = static_cast<float>(config_.layer_norm_eps),
                            .y = rows_of(normed_, rows),
                            .mean = rows_of(mean_, rows),
                            .inverse_stddev = rows_of(inverse_stddev_, rows)});
  return rows_of(normed_, rows);
}

void MaskedLmHead::transform_backward(Context& context, ConstView hidden, View grad_hidden) const {
  const PhaseSpan phase(context, kHeadsBackward);
  const int64_t rows = hidden.extent(0);
  const View grad = rows_of(grad_normed_, rows);
  ops::layer_norm_backward(context, {.kind = config_.choices.norm,
                                     .grad_y = grad,
                                     .x = rows_of(activated_, rows),
                                     .gamma = table_->value(norm_.gamma),
                                     .mean = rows_of(mean_, rows),
                                     .inverse_stddev = rows_of(inverse_stddev_, rows),
                                     .grad_x = grad,
                                     .grad_gamma = table_->gradient(norm_.gamma),
                                     .grad_beta = gradient_or_none(*table_, norm_.beta)});
  ops::activation_backward(context, {.kind = kind_of(config_.choices.head_activation),
                                     .grad_y = grad,
                                     .saved = rows_of(pre_activation_, rows),
                                     .grad_x = grad,
                                     .grad_bias = gradient_or_none(*table_, dense_.bias)});
  ops::linear_backward_weight(context, weight_gradient(*table_, dense_.weight, grad, hidden));
  ops::linear_backward_input(
      context,
      {.grad_y = grad, .weight = table_->compute_value(dense_.weight), .grad_x = grad_hidden});
}

View MaskedLmHead::decode(Context& context, ConstView input) const {
  const View logits = rows_of(logits_, input.extent(0));
  ops::linear(context, {.x = input,
                        .weight = table_->compute_value(decoder_.weight),
                        .bias = bias_to_add(context, *table_, decoder_.bias),
                        .y = logits});
  return logits;
}

void MaskedLmHead::loss(Context& context, const Loss& call) const {
  const int64_t masked = call.hidden.extent(0);
  const bool training = !call.grad_hidden.empty();
  const PhaseSpan phase(context, kHeadsForward);
  const ConstView transformed = transform(context, call.hidden);
  const bool transforms = config_.choices.head_transform;
  const View grad_input = transforms && training ? rows_of(grad_normed_, masked) : call.grad_hidden;
  for (int64_t begin = 0; begin < masked; begin += chunk_rows_) {
    const int64_t end = std::min(masked, begin + chunk_rows_);
    const View logits = decode(context, transformed.rows(begin, end));
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
        context, weight_gradient(*table_, decoder_.weight, logits, transformed.rows(begin, end),
                                 gradient_or_none(*table_, decoder_.bias)));
    ops::linear_backward_input(context, {.grad_y = logits,
                                         .weight = table_->compute_value(decoder_.weight),
                                         .grad_x = grad_input.rows(begin, end)});
  }
  if (!training || masked == 0 || !transforms) return;
  transform_backward(context, call.hidden, call.grad_hidden);
}

void MaskedLmHead::predict(Context& context, ConstView hidden, View logits) const {
  const int64_t rows = hidden.extent(0), stored = config_.stored_vocab_size();
  const ConstView transformed = transform(context, hidden);
  for (int64_t begin = 0; begin < rows; begin += chunk_rows_) {
    const int64_t end = std::min(rows, begin + chunk_rows_);
    const Tensor chunk = to_cpu_f32(decode(context, transformed.rows(begin, end)));
    for (int64_t row = begin; row < end; ++row) {
      const float* from = chunk.data<float>() + (row - begin) * stored;
      std::copy(from, from + config_.vocab_size, logits.data<float>() + row * config_.vocab_size);
    }
  }
}

}  // namespace onebit::model
