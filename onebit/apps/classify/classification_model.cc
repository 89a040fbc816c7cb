#include "onebit/apps/classify/classification_model.h"

#include <array>

namespace onebit::classify {

ClassificationModel::ClassificationModel(const model::EncoderConfig& config, ClassifierHead head,
                                         ParameterTable& table)
    : bert_(config, table),
      head_range_{table.size_elements(), 0},
      pooler_(config, table),
      head_(std::move(head)),
      classifier_(config, table, "classifier", head_.outputs),
      dropout_(head_.dropout.value_or(config.hidden_dropout)) {
  ONEBIT_INVARIANT(head_.weights.empty() ||
                   static_cast<int64_t>(head_.weights.size()) == head_.outputs);
  head_range_.end = table.size_elements();
}

model::MemoryPlan ClassificationModel::plan(Context& context, const model::BatchLimits& limits,
                                            const model::MemoryOptions& memory, bool training) {
  const DType compute = bert_.table().compute_type();
  model::MemoryPlan reserved(context.device());
  bert_.reserve(reserved, {.limits = limits,
                           .output_rows = limits.sequences,
                           .memory = memory,
                           .training = training,
                           .compute = compute});
  pooler_.reserve(reserved, limits.sequences, compute);
  classifier_.reserve(reserved, limits.sequences, training, compute);
  weights_ = Tensor();
  if (!head_.weights.empty()) {
    weights_ = reserved.reserve(model::MemoryKind::kHead, DType::kF32, {head_.outputs});
    copy(weights_.view(), ConstView::of(head_.weights.data(), {head_.outputs}));
  }
  grad_pooled_ = Tensor();
  if (training) {
    dropout_.reserve(reserved, limits.sequences);
    grad_pooled_ = reserved.reserve(model::MemoryKind::kHead, compute,
                                    {limits.sequences, config().hidden_size});
  }
  counter_.reserve(context.device(), limits.sequences);
  return reserved;
}

ClassificationModel::Result ClassificationModel::run(Context& context,
                                                     const model::DeviceBatch& batch, double weight,
                                                     const model::TrainingPass* pass) {
  const int64_t sequences = batch.sequences();
  const std::array<ConstView, 1> output_rows{batch.first_rows()};
  const View hidden = bert_.forward(context, batch, output_rows, pass);
  const View grad_pooled = pass == nullptr ? View() : model::rows_of(grad_pooled_, sequences);
  const double scale = pass == nullptr ? 0 : weight * pass->loss_scale;
  const bool has_classes = head_.kind == model::LabelKind::kClass;
  const ConstView targets = has_classes
                                ? batch.sequence_labels
                                : batch.sequence_values.reshaped({sequences, head_.outputs});
  classifier_.loss(context, {.pooled = pooler_.forward(context, hidden),
                             .targets = targets,
                             .dropout = dropout_.of(context, batch, batch.first_rows(), pass),
                             .gradient_scale = static_cast<float>(scale),
                             .grad_pooled = grad_pooled,
                             .kind = head_.kind,
                             .weights = weights_.empty() ? ConstView() : weights_.view()});
  if (has_classes) {
    counter_.start(context, classifier_.losses(sequences), classifier_.correct(sequences), targets);
  } else {
    counter_.start(context, classifier_.losses(sequences));
  }
  if (pass != nullptr) {
    if (pass->forward_done) pass->forward_done();
    pooler_.backward(context, hidden, grad_pooled, bert_.output_gradient());
    if (pass->gradients_ready) pass->gradients_ready(head_range_);
    bert_.backward(context, batch, output_rows, *pass);
  }
  const model::LabelSums sums = counter_.sums();
  return {.loss_sum = sums.loss, .sequences = sums.items, .correct = sums.correct};
}

ClassificationModel::Result ClassificationModel::forward_backward(Context& context,
                                                                  const model::DeviceBatch& batch,
                                                                  double weight,
                                                                  const model::TrainingPass& pass) {
  return run(context, batch, weight, &pass);
}

ClassificationModel::Result ClassificationModel::evaluate(Context& context,
                                                          const model::DeviceBatch& batch) {
  return run(context, batch, 0, nullptr);
}

Tensor ClassificationModel::predict(Context& context, const model::DeviceBatch& batch) {
  const std::array<ConstView, 1> output_rows{batch.first_rows()};
  const View hidden = bert_.forward(context, batch, output_rows, nullptr);
  return to_cpu_f32(classifier_.logits(context, pooler_.forward(context, hidden)));
}

}  // namespace onebit::classify
