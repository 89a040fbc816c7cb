#include "onebit/apps/tag/tagging_model.h"

#include <array>

namespace onebit::tag {

TaggingModel::TaggingModel(const model::EncoderConfig& config, const TaggerHead& head,
                           ParameterTable& table)
    : bert_(config, table),
      head_range_{table.size_elements(), 0},
      head_(head),
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
  classifier_.reserve(reserved, limits.labelled, training, compute);
  if (training) dropout_.reserve(reserved, limits.labelled);
  counter_.reserve(context.device(), limits.labelled);
  return reserved;
}

TaggingModel::Result TaggingModel::run(Context& context, const model::DeviceBatch& batch,
                                       double weight, const model::TrainingPass* pass) {
  const int64_t tagged = batch.labelled_rows.elements();
  const std::array<ConstView, 1> output_rows{batch.labelled_rows};
  const View hidden = bert_.forward(context, batch, output_rows, pass);
  const double scale = pass == nullptr ? 0 : weight * pass->loss_scale;
  classifier_.loss(context, {.pooled = hidden,
                             .targets = batch.row_labels,
                             .dropout = dropout_.of(context, batch, batch.labelled_rows, pass),
                             .gradient_scale = static_cast<float>(scale),
                             .grad_pooled = pass == nullptr ? View() : bert_.output_gradient()});
  counter_.start(context, classifier_.losses(tagged), classifier_.correct(tagged),
                 batch.row_labels);
  if (pass != nullptr) {
    if (pass->forward_done) pass->forward_done();
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
  return to_cpu_f32(
      classifier_.logits(context, bert_.forward(context, batch, output_rows, nullptr)));
}

}  // namespace onebit::tag
