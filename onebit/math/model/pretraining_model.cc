#include "onebit/math/model/pretraining_model.h"

#include <array>

namespace onebit::model {
namespace {

float scale_of(double weight, const TrainingPass* pass) {
  return pass == nullptr ? 0.0f : static_cast<float>(weight * pass->loss_scale);
}

}  // namespace

PreTrainingModel::Result& PreTrainingModel::Result::operator+=(const Result& other) {
  mlm_loss_sum += other.mlm_loss_sum;
  nsp_loss_sum += other.nsp_loss_sum;
  masked += other.masked;
  masked_correct += other.masked_correct;
  sequences += other.sequences;
  nsp_correct += other.nsp_correct;
  return *this;
}

PreTrainingModel::PreTrainingModel(const EncoderConfig& config, ParameterTable& table,
                                   PreTrainingHeads heads)
    : bert_(config, table),
      head_range_{table.size_elements(), 0},
      pooler_(heads == PreTrainingHeads::kBoth ? std::make_optional<Pooler>(config, table)
                                               : std::nullopt),
      masked_lm_(config, table, bert_.word_embeddings()) {
  if (pooler_) next_sentence_.emplace(config, table, "cls.seq_relationship", 2);
  head_range_.end = table.size_elements();
}

void PreTrainingModel::reserve(MemoryPlan& memory, const BatchLimits& limits,
                               const MemoryOptions& options, bool training, DType compute) {
  limits_ = limits;
  bert_.reserve(memory, {.limits = limits,
                         .output_rows = limits.labelled + (pooler_ ? limits.sequences : 0),
                         .memory = options,
                         .training = training,
                         .compute = compute});
  masked_lm_.reserve(memory, limits.labelled, training, compute);
  if (!pooler_) return;
  pooler_->reserve(memory, limits.sequences, compute);
  next_sentence_->reserve(memory, limits.sequences, training, compute);
  grad_pooled_ = training ? memory.reserve(MemoryKind::kHead, compute,
                                           {limits.sequences, config().hidden_size})
                          : Tensor();
}

MemoryPlan PreTrainingModel::plan(Context& context, const BatchLimits& limits,
                                  const MemoryOptions& memory, bool training) {
  MemoryPlan reserved(context.device());
  reserve(reserved, limits, memory, training, bert_.table().compute_type());
  masked_counter_.reserve(context.device(), limits.labelled);
  if (pooler_) sequence_counter_.reserve(context.device(), limits.sequences);
  return reserved;
}

void PreTrainingModel::check(int64_t masked) const {
  require(masked <= limits_.labelled,
          "a micro-batch has {} masked rows, but the model was planned for {}", masked,
          limits_.labelled);
}

void PreTrainingModel::next_sentence_loss(Context& context, const DeviceBatch& batch,
                                          View first_hidden, double weight,
                                          const TrainingPass* pass) {
  const int64_t sequences = batch.sequences();
  next_sentence_->loss(
      context, {.pooled = pooler_->forward(context, first_hidden),
                .targets = batch.sequence_labels,
                .dropout = {},
                .gradient_scale = scale_of(weight, pass),
                .grad_pooled = pass == nullptr ? View() : rows_of(grad_pooled_, sequences)});
}

PreTrainingModel::Result PreTrainingModel::run(Context& context, const DeviceBatch& batch,
                                               const LossWeights& weights,
                                               const TrainingPass* pass) {
  const int64_t masked = batch.labelled_rows.elements(), sequences = batch.sequences();
  check(masked);
  const std::array<ConstView, 2> all_rows{batch.labelled_rows, batch.first_rows()};
  const OutputRows output_rows = OutputRows(all_rows).first(pooler_ ? 2 : 1);
  const View hidden = bert_.forward(context, batch, output_rows, pass);
  const View masked_hidden = hidden.rows(0, masked);
  View first_hidden, grad_masked, grad_first;
  if (pass != nullptr) grad_masked = bert_.output_gradient().rows(0, masked);
  if (pooler_) first_hidden = hidden.rows(masked, masked + sequences);
  if (pooler_ && pass != nullptr) {
    grad_first = bert_.output_gradient().rows(masked, masked + sequences);
  }
  masked_lm_.loss(context, {.hidden = masked_hidden,
                            .targets = batch.row_labels,
                            .gradient_scale = scale_of(weights.masked_lm, pass),
                            .grad_hidden = grad_masked});
  if (pooler_) next_sentence_loss(context, batch, first_hidden, weights.next_sentence, pass);
  masked_counter_.start(context, masked_lm_.losses(masked), masked_lm_.correct(masked),
                        batch.row_labels);
  if (pooler_) {
    sequence_counter_.start(context, next_sentence_->losses(sequences),
                            next_sentence_->correct(sequences), batch.sequence_labels);
  }
  if (pass != nullptr) {
    if (pass->forward_done) pass->forward_done();
    if (pooler_) {
      pooler_->backward(context, first_hidden, rows_of(grad_pooled_, sequences), grad_first);
    }
    if (pass->gradients_ready) pass->gradients_ready(head_range_);
    bert_.backward(context, batch, output_rows, *pass);
  }
  const LabelSums words = masked_counter_.sums();
  const LabelSums pairs = pooler_ ? sequence_counter_.sums() : LabelSums();
  return {.mlm_loss_sum = words.loss,
          .nsp_loss_sum = pairs.loss,
          .masked = words.items,
          .masked_correct = words.correct,
          .sequences = pairs.items,
          .nsp_correct = pairs.correct};
}

PreTrainingModel::Result PreTrainingModel::forward_backward(Context& context,
                                                            const DeviceBatch& batch,
                                                            const LossWeights& weights,
                                                            const TrainingPass& pass) {
  return run(context, batch, weights, &pass);
}

PreTrainingModel::Result PreTrainingModel::evaluate(Context& context, const DeviceBatch& batch) {
  return run(context, batch, {}, nullptr);
}

Tensor PreTrainingModel::predict_masked(Context& context, const DeviceBatch& batch) {
  const int64_t masked = batch.labelled_rows.elements();
  check(masked);
  const std::array<ConstView, 1> output_rows{batch.labelled_rows};
  const View hidden = bert_.forward(context, batch, output_rows, nullptr);
  Tensor logits(Device{}, DType::kF32, {masked, config().vocab_size});
  masked_lm_.predict(context, hidden, logits.view());
  return logits;
}

}  // namespace onebit::model
