#include "onebit/apps/tag/tagging_model.h"

#include <array>

namespace onebit::tag {

TaggingModel::TaggingModel(const model::EncoderConfig& config, const TaggerHead& head,
                           ParameterTable& table)
    : bert_(config, table),
      head_range_{table.size_elements(), 0},
      head_(head),
      dense_(config.choices.dense_before_labels ? std::make_optional<model::Pooler>(config, table)
                                                : std::nullopt),
      classifier_(config, table, "classifier", head.outputs),
      dropout_(head.dropout.value_or(config.hidden_dropout)) {
  head_range_.end = table.size_elements();
}

model::MemoryPlan TaggingModel::plan(Context& context, const model::BatchLimits& limits,
                                     const model::MemoryOptions& memory, bool training) {
  const DType compute = bert_.table().compute_type();
  model::MemoryPlan reserved(context.device());
  bert_.reserve(reserved, {.limits = limits,
                           .output_rows = limits.labelled,
                           .memory = memory,
                           .training = training,
                           .compute = compute});
  if (dense_) dense_->reserve(reserved, limits.labelled, training, compute);
  grad_pooled_ = Tensor();
  if (dense_ && training) {
    grad_pooled_ = reserved.reserve(model::MemoryKind::kHead, compute,
                                    {limits.labelled, config().hidden_size});
  }
  classifier_.reserve(reserved, limits.labelled, training, compute);
  if (training) dropout_.reserve(reserved, limits.labelled);
  counter_.reserve(context.device(), limits.labelled);
  return reserved;
}

ConstView TaggingModel::before_labels(Context& context, ConstView hidden) const {
  return dense_ ? dense_->forward(context, hidden) : hidden;
}

TaggingModel::Result TaggingModel::run(Context& context, const model::DeviceBatch& batch,
                                       double weight, const model::TrainingPass* pass) {
  const int64_t tagged = batch.labelled_rows.elements();
  const std::array<ConstView, 1> output_rows{batch.labelled_rows};
  const View hidden = bert_.forward(context, batch, output_rows, pass);
  const double scale = pass == nullptr ? 0 : weight * pass->loss_scale;
  View grad_pooled;
  if (pass != nullptr) {
    grad_pooled = dense_ ? model::rows_of(grad_pooled_, tagged) : bert_.output_gradient();
  }
  classifier_.loss(context, {.pooled = before_labels(context, hidden),
                             .targets = batch.row_labels,
                             .dropout = dropout_.of(context, batch, batch.labelled_rows, pass),
                             .gradient_scale = static_cast<float>(scale),
                             .grad_pooled = grad_pooled});
  counter_.start(context, classifier_.losses(tagged), classifier_.correct(tagged),
                 batch.row_labels);
  if (pass != nullptr) {
    if (pass->forward_done) pass->forward_done();
    if (dense_) dense_->backward(context, hidden, grad_pooled, bert_.output_gradient());
    if (pass->gradients_ready) pass->gradients_ready(head_range_);
    bert_.backward(context, batch, output_rows, *pass);
  }
  const model::LabelSums sums = counter_.sums();
  return {.loss_sum = sums.loss, .words = sums.items, .correct = sums.correct};
}

TaggingModel::Result TaggingModel::forward_backward(Context& context,
                                                    const model::DeviceBatch& batch, double weight,
                                                    const model::TrainingPass& pass) {
  return run(context, batch, weight, &pass);
}

TaggingModel::Result TaggingModel::evaluate(Context& context, const model::DeviceBatch& batch) {
  return run(context, batch, 0, nullptr);
}

Tensor TaggingModel::predict(Context& context, const model::DeviceBatch& batch) {
  const std::array<ConstView, 1> output_rows{batch.labelled_rows};
  const View hidden = bert_.forward(context, batch, output_rows, nullptr);
  return to_cpu_f32(classifier_.logits(context, before_labels(context, hidden)));
}

}  // namespace onebit::tag
