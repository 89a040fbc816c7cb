#include "onebit/apps/squad/question_answering_model.h"

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/losses.h"

namespace onebit::squad {

QuestionAnsweringModel::QuestionAnsweringModel(const model::EncoderConfig& config,
                                               ParameterTable& table, double dropout)
    : bert_(config, table),
      head_range_{table.size_elements(), 0},
      dense_(config.choices.dense_before_labels ? std::make_optional<model::Pooler>(config, table)
                                                : std::nullopt),
      outputs_(model::declare_linear(table, "qa_outputs", 2, config.hidden_size,
                                     config.initializer_range)),
      dropout_(dropout) {
  head_range_.end = table.size_elements();
}

model::MemoryPlan QuestionAnsweringModel::plan(Context& context, const model::BatchLimits& limits,
                                               const model::MemoryOptions& memory, bool training) {
  const DType compute = bert_.table().compute_type();
  model::MemoryPlan reserved(context.device());
  bert_.reserve(reserved, {.limits = limits,
                           .output_rows = 0,
                           .memory = memory,
                           .training = training,
                           .compute = compute});
  if (dense_) dense_->reserve(reserved, limits.rows, training, compute);
  const auto reserve_rows_if = [&](bool is_needed) {
    return is_needed ? reserved.reserve(model::MemoryKind::kHead, compute,
                                        {limits.rows, config().hidden_size})
                     : Tensor();
  };
  grad_pooled_ = reserve_rows_if(dense_ && training);
  dropped_ = reserve_rows_if(dropout_ > 0 && training);
  logits_ = reserved.reserve(model::MemoryKind::kHead, compute, {limits.rows, 2});
  losses_ = reserved.reserve(model::MemoryKind::kHead, DType::kF32, {2 * limits.sequences});
  host_losses_ = Staging(context.device(), 2 * limits.sequences * size_bytes_of(DType::kF32));
  host_spans_ = Staging(context.device(), 2 * limits.sequences * size_bytes_of(DType::kI32));
  return reserved;
}

ConstView QuestionAnsweringModel::before_labels(Context& context, ConstView hidden) const {
  return dense_ ? dense_->forward(context, hidden) : hidden;
}

kernels::Dropout QuestionAnsweringModel::dropout_of(const model::DeviceBatch& batch,
                                                    const model::TrainingPass* pass) const {
  if (pass == nullptr || dropout_ <= 0) return {};
  return {.probability = static_cast<float>(dropout_),
          .seed = pass->dropout_seed,
          .site = model::dropout_site(0, model::DropoutPlace::kClassifier),
          .row_keys = batch.row_keys};
}

View QuestionAnsweringModel::logits(Context& context, ConstView before_labels) const {
  const View result = model::rows_of(logits_, before_labels.extent(0));
  ops::linear(context, {.x = before_labels,
                        .weight = bert_.table().compute_value(outputs_.weight),
                        .bias = model::bias_to_add(context, bert_.table(), outputs_.bias),
                        .y = result});
  return result;
}

View QuestionAnsweringModel::scores_and_loss(Context& context, const model::DeviceBatch& batch,
                                             ConstView before_labels, double gradient_scale,
                                             bool write_gradient) const {
  const PhaseSpan phase(context, model::kHeadsForward);
  const View scores = logits(context, before_labels);
  ops::span_cross_entropy(context,
                          {.logits = scores,
                           .sequence_starts = batch.sequence_starts,
                           .targets = batch.sequence_labels.reshaped({2, batch.sequences()}),
                           .write_gradient = write_gradient,
                           .gradient_scale = static_cast<float>(gradient_scale),
                           .losses = model::matrix_of(losses_, 2, batch.sequences())});
  return scores;
}

void QuestionAnsweringModel::head_backward(Context& context, ConstView grad_scores,
                                           ConstView hidden, ConstView before_labels,
                                           const kernels::Dropout& dropout) const {
  const PhaseSpan phase(context, model::kHeadsBackward);
  ParameterTable& table = bert_.table();
  ops::linear_backward_weight(
      context, model::weight_gradient(table, outputs_.weight, grad_scores, before_labels,
                                      table.gradient(outputs_.bias)));
  const View output_gradient = bert_.output_gradient();
  const View grad_pooled =
      dense_ ? model::rows_of(grad_pooled_, hidden.extent(0)) : output_gradient;
  ops::linear_backward_input(context, {.grad_y = grad_scores,
                                       .weight = table.compute_value(outputs_.weight),
                                       .grad_x = grad_pooled});
  if (dropout.probability > 0) {
    ops::dropout_backward(context,
                          {.grad_y = grad_pooled, .dropout = dropout, .grad_x = grad_pooled});
  }
  if (dense_) dense_->backward(context, hidden, grad_pooled, output_gradient);
}

QuestionAnsweringModel::Result QuestionAnsweringModel::run(Context& context,
                                                           const model::DeviceBatch& batch,
                                                           double weight,
                                                           const model::TrainingPass* pass) {
  const int64_t sequences = batch.sequences();
  const View hidden = bert_.forward(context, batch, {}, pass);
  ConstView input = before_labels(context, hidden);
  const kernels::Dropout dropout = dropout_of(batch, pass);
  if (dropout.probability > 0) {
    const View dropped = model::rows_of(dropped_, batch.rows());
    ops::dropout(context, {.x = input, .dropout = dropout, .y = dropped});
    input = dropped;
  }
  const double scale = pass == nullptr ? 0 : 0.5 * weight * pass->loss_scale;
  const View scores = scores_and_loss(context, batch, input, scale, pass != nullptr);
  host_losses_.download(context, losses_.view().raw(),
                        losses_.first_rows(2 * sequences).size_bytes());
  host_spans_.download(context, batch.sequence_labels.raw(), batch.sequence_labels.size_bytes());
  if (pass != nullptr) {
    if (pass->forward_done) pass->forward_done();
    head_backward(context, scores, hidden, input, dropout);
    if (pass->gradients_ready) pass->gradients_ready(head_range_);
    bert_.backward(context, batch, {}, *pass);
  }
  return sums(sequences);
}

QuestionAnsweringModel::Result QuestionAnsweringModel::sums(int64_t sequences) {
  host_losses_.wait();
  host_spans_.wait();
  const auto* losses = reinterpret_cast<const float*>(host_losses_.data());
  const auto* targets = reinterpret_cast<const int32_t*>(host_spans_.data());
  Result result;
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    const int64_t end = sequences + sequence;
    result.loss_sum +=
        0.5 * (static_cast<double>(losses[sequence]) + static_cast<double>(losses[end]));
    result.sequences += targets[sequence] >= 0 || targets[end] >= 0 ? 1 : 0;
  }
  return result;
}

QuestionAnsweringModel::Result QuestionAnsweringModel::forward_backward(
    Context& context, const model::DeviceBatch& batch, double weight,
    const model::TrainingPass& pass) {
  return run(context, batch, weight, &pass);
}

QuestionAnsweringModel::Result QuestionAnsweringModel::evaluate(Context& context,
                                                                const model::DeviceBatch& batch) {
  return run(context, batch, 0, nullptr);
}

Tensor QuestionAnsweringModel::predict(Context& context, const model::DeviceBatch& batch) {
  const View hidden = bert_.forward(context, batch, {}, nullptr);
  return to_cpu_f32(logits(context, before_labels(context, hidden)));
}

}  // namespace onebit::squad
