#include "onebit/math/model/embeddings.h"

#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/embedding.h"

namespace onebit::model {
namespace {

int declare_embedding(ParameterTable& table, const std::string& name, int64_t rows,
                      const BertConfig& config, int64_t storage_rows = 0) {
  return table.add({.name = "bert.embeddings." + name + ".weight",
                    .shape = {rows, config.hidden_size},
                    .init = InitialValue::kNormal,
                    .init_stddev = config.initializer_range,
                    .decay = true,
                    .lookup = true,
                    .storage_rows = storage_rows});
}

}  // namespace

Embeddings::Embeddings(const BertConfig& config, ParameterTable& table)
    : config_(config),
      table_(&table),
      word_(declare_embedding(table, "word_embeddings", config.vocab_size, config,
                              config.stored_vocab_size())),
      position_(declare_embedding(table, "position_embeddings", config.max_positions, config)),
      segment_(declare_embedding(table, "token_type_embeddings", config.segments, config)),
      norm_(declare_norm(table, "bert.embeddings.LayerNorm", config.hidden_size)) {}

void Embeddings::reserve(MemoryPlan& memory, const BatchLimits& limits, bool training) {
  mean_ = Tensor();
  inverse_stddev_ = Tensor();
  if (!training) return;
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

void Embeddings::forward(Context& context, const DeviceBatch& batch, const TrainingPass* pass,
                         View y) const {
  ops::embedding(context, {.tokens = batch.tokens,
                           .positions = batch.positions,
                           .segments = batch.segments,
                           .word = table_->compute_value(word_).rows(0, config_.vocab_size),
                           .position = table_->compute_value(position_),
                           .segment = table_->compute_value(segment_),
                           .gamma = table_->value(norm_.gamma),
                           .beta = table_->value(norm_.beta),
                           .epsilon = static_cast<float>(config_.layer_norm_eps),
                           .dropout = dropout(batch, pass),
                           .y = y,
                           .mean = rows_of(mean_, batch.rows()),
                           .inverse_stddev = rows_of(inverse_stddev_, batch.rows())});
}

void Embeddings::backward(Context& context, const DeviceBatch& batch, const TrainingPass& pass,
                          ConstView grad_y) const {
  // Stale where a masked-word head would have overwritten it, but had no masked words.
  if (table_->stale_gradients().take(word_)) ops::fill(context, table_->gradient(word_), 0);
  ops::embedding_backward(context,
                          {.grad_y = grad_y,
                           .tokens = batch.tokens,
                           .positions = batch.positions,
                           .segments = batch.segments,
                           .word = table_->compute_value(word_).rows(0, config_.vocab_size),
                           .position = table_->compute_value(position_),
                           .segment = table_->compute_value(segment_),
                           .gamma = table_->value(norm_.gamma),
                           .mean = rows_of(mean_, batch.rows()),
                           .inverse_stddev = rows_of(inverse_stddev_, batch.rows()),
                           .dropout = dropout(batch, &pass),
                           .grad_word = table_->gradient(word_).rows(0, config_.vocab_size),
                           .grad_position = table_->gradient(position_),
                           .grad_segment = table_->gradient(segment_),
                           .grad_gamma = table_->gradient(norm_.gamma),
                           .grad_beta = table_->gradient(norm_.beta)});
}

}  // namespace onebit::model
