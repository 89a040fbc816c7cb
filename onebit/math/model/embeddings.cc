#include "onebit/math/model/embeddings.h"

#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/embedding.h"

namespace onebit::model {

namespace {

// No rows: no table.
int declare_embedding(ParameterTable& table, const std::string& name, int64_t rows,
                      const EncoderConfig& config, int64_t storage_rows = 0) {
  if (rows == 0) return kNoParameter;
  return table.add({.name = "bert.embeddings." + name + ".weight",
                    .shape = {rows, config.embedding_size()},
                    .init = InitialValue::kNormal,
                    .init_stddev = config.initializer_range,
                    .decay = true,
                    .lookup = true,
                    .storage_rows = storage_rows});
}

}  // namespace

Embeddings::Embeddings(const EncoderConfig& config, ParameterTable& table)
    : config_(config),
      table_(&table),
      word_(declare_embedding(table, "word_embeddings", config.vocab_size, config,
                              config.stored_vocab_size())),
      position_(declare_embedding(table, "position_embeddings",
                                  config.choices.position_table ? config.position_rows() : 0,
                                  config)),
      segment_(declare_embedding(table, "token_type_embeddings", config.segments, config)) {
  if (config.choices.embedding_norm) {
    norm_ = declare_norm(table, "bert.embeddings.LayerNorm", config.embedding_size(),
                         config.choices.norm_bias);
  }
  if (config.has_projection()) {
    projection_ = declare_linear(table, "bert.embeddings_project", config.hidden_size,
                                 config.embedding_size(), config.initializer_range);
  }
}

void Embeddings::reserve(MemoryPlan& memory, const BatchLimits& limits, bool training,
                         DType compute) {
  for (Tensor* one : {&mean_, &inverse_stddev_, &embedded_, &grad_embedded_, &one_segment_}) {
    *one = Tensor();
  }
  if (config_.segments == 1) {
    one_segment_ = memory.reserve(MemoryKind::kScratch, DType::kI32, {limits.rows});
    if (!one_segment_.empty()) {
      const Tensor zeros = Tensor::zeros(Device{}, DType::kI32, {limits.rows});
      copy(one_segment_.view(), zeros.view());
    }
  }
  if (config_.has_projection()) {
    const Shape shape{limits.rows, config_.embedding_size()};
    embedded_ = memory.reserve(MemoryKind::kSaved, compute, shape);
    if (training) grad_embedded_ = memory.reserve(MemoryKind::kGradients, compute, shape);
  }
  if (!training || !config_.choices.embedding_norm) return;
  mean_ = memory.reserve(MemoryKind::kSaved, DType::kF32, {limits.rows});
  inverse_stddev_ = memory.reserve(MemoryKind::kSaved, DType::kF32, {limits.rows});
}

kernels::Dropout Embeddings::dropout(const DeviceBatch& batch, const TrainingPass* pass) const {
  if (pass == nullptr) return {};
  return {.probability = static_cast<float>(config_.hidden_dropout),
          .seed = pass->dropout_seed,
          .site = dropout_site(0, DropoutPlace::kEmbedding),
          .row_keys = batch.row_keys};
}

template <typename AnyView>
AnyView Embeddings::token_positions(const DeviceBatch& batch, AnyView table) const {
  if (table.empty()) return table;
  return table.rows(config_.choices.first_position + batch.lowest_position, table.extent(0));
}

ConstView Embeddings::segments(const DeviceBatch& batch) const {
  if (segment_ == kNoParameter) return {};
  return one_segment_.empty() ? batch.segments : rows_of(one_segment_, batch.rows());
}

void Embeddings::forward(Context& context, const DeviceBatch& batch, const TrainingPass* pass,
                         View y) const {
  const View embedded = config_.has_projection() ? rows_of(embedded_, batch.rows()) : y;
  const bool has_positions = position_ != kNoParameter;
  ops::embedding(context,
                 {.kind = config_.choices.norm,
                  .tokens = batch.tokens,
                  .positions = has_positions ? batch.positions : ConstView(),
                  .segments = segments(batch),
                  .word = table_->compute_value(word_).rows(0, config_.vocab_size),
                  .position = token_positions(batch, compute_value_or_none(*table_, position_)),
                  .segment = compute_value_or_none(*table_, segment_),
                  .gamma = value_or_none(*table_, norm_.gamma),
                  .beta = value_or_none(*table_, norm_.beta),
                  .epsilon = static_cast<float>(config_.layer_norm_eps),
                  .dropout = dropout(batch, pass),
                  .y = embedded,
                  .mean = rows_of(mean_, batch.rows()),
                  .inverse_stddev = rows_of(inverse_stddev_, batch.rows())});
  if (!config_.has_projection()) return;
  ops::linear(context, {.x = embedded,
                        .weight = table_->compute_value(projection_.weight),
                        .bias = bias_to_add(context, *table_, projection_.bias),
                        .y = y});
}

void Embeddings::backward(Context& context, const DeviceBatch& batch, const TrainingPass& pass,
                          ConstView grad_y) const {
  // Stale where a masked-word head would have overwritten it, but had no masked words.
  if (table_->stale_gradients().take(word_)) ops::fill(context, table_->gradient(word_), 0);
  if (config_.has_projection()) {
    const View grad_embedded = rows_of(grad_embedded_, batch.rows());
    ops::linear_backward_weight(context, weight_gradient(*table_, projection_.weight, grad_y,
                                                         rows_of(embedded_, batch.rows()),
                                                         table_->gradient(projection_.bias)));
    ops::linear_backward_input(context, {.grad_y = grad_y,
                                         .weight = table_->compute_value(projection_.weight),
                                         .grad_x = grad_embedded});
    grad_y = grad_embedded;
  }
  const bool has_positions = position_ != kNoParameter;
  ops::embedding_backward(
      context, {.kind = config_.choices.norm,
                .grad_y = grad_y,
                .tokens = batch.tokens,
                .positions = has_positions ? batch.positions : ConstView(),
                .segments = segments(batch),
                .word = table_->compute_value(word_).rows(0, config_.vocab_size),
                .position = token_positions(batch, compute_value_or_none(*table_, position_)),
                .segment = compute_value_or_none(*table_, segment_),
                .gamma = value_or_none(*table_, norm_.gamma),
                .mean = rows_of(mean_, batch.rows()),
                .inverse_stddev = rows_of(inverse_stddev_, batch.rows()),
                .dropout = dropout(batch, &pass),
                .grad_word = table_->gradient(word_).rows(0, config_.vocab_size),
                .grad_position = token_positions(batch, gradient_or_none(*table_, position_)),
                .grad_segment = gradient_or_none(*table_, segment_),
                .grad_gamma = gradient_or_none(*table_, norm_.gamma),
                .grad_beta = gradient_or_none(*table_, norm_.beta)});
}

}  // namespace onebit::model
