#include "onebit/math/model/sequence_classifier.h"

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/losses.h"
#include "onebit/math/ops/rows.h"

namespace onebit::model {

void SequenceStates::reserve(MemoryPlan& memory, int64_t sequences, bool training, DType compute) {
  for (Tensor* one : {&mean_, &grad_mean_, &rounded_, &grad_rounded_}) *one = Tensor();
  if (!has_mean_) return;
  const auto reserve_as = [&](DType dtype) {
    return memory.reserve(MemoryKind::kHead, dtype, {sequences, hidden_});
  };
  const bool is_rounded = compute != DType::kF32;
  mean_ = reserve_as(DType::kF32);
  if (is_rounded) rounded_ = reserve_as(compute);
  if (training) grad_mean_ = reserve_as(DType::kF32);
  if (training && is_rounded) grad_rounded_ = reserve_as(compute);
}

ConstView SequenceStates::read(Context& context, const DeviceBatch& batch, ConstView hidden) const {
  if (!has_mean_) return hidden;
  const PhaseSpan phase(context, kHeadsForward);
  const View mean = rows_of(mean_, batch.sequences());
  ops::sequence_mean(context, {.x = hidden, .sequence_starts = batch.sequence_starts, .y = mean});
  if (rounded_.empty()) return mean;
  const View rounded = rows_of(rounded_, batch.sequences());
  ops::cast(context, {.from = mean, .to = rounded});
  return rounded;
}

View SequenceStates::gradient(const DeviceBatch& batch, View output_gradient) const {
  if (!has_mean_) return output_gradient;
  return rows_of(grad_rounded_.empty() ? grad_mean_ : grad_rounded_, batch.sequences());
}

void SequenceStates::backward(Context& context, const DeviceBatch& batch,
                              View output_gradient) const {
  if (!has_mean_) return;
  const PhaseSpan phase(context, kHeadsBackward);
  const View grad_mean = rows_of(grad_mean_, batch.sequences());
  if (!grad_rounded_.empty()) {
    ops::cast(context, {.from = rows_of(grad_rounded_, batch.sequences()), .to = grad_mean});
  }
  ops::sequence_mean_backward(
      context,
      {.grad_y = grad_mean, .sequence_starts = batch.sequence_starts, .grad_x = output_gradient});
}

void ClassifierDropout::reserve(MemoryPlan& memory, int64_t rows) {
  row_keys_ = memory.reserve(MemoryKind::kHead, DType::kU64, {rows});
}

kernels::Dropout ClassifierDropout::of(Context& context, const DeviceBatch& batch, ConstView rows,
                                       const TrainingPass* pass) const {
  if (pass == nullptr || probability_ <= 0) return {};
  const View row_keys = rows_of(row_keys_, rows.elements());
  ops::gather_rows(context, {.x = batch.row_keys.reshaped({batch.rows(), 1}),
                             .indices = rows,
                             .y = row_keys.reshaped({rows.elements(), 1})});
  return {.probability = static_cast<float>(probability_),
          .seed = pass->dropout_seed,
          .site = dropout_site(0, DropoutPlace::kClassifier),
          .row_keys = row_keys};
}

SequenceClassifier::SequenceClassifier(const EncoderConfig& config, ParameterTable& table,
                                       const std::string& name, int64_t outputs)
    : hidden_(config.hidden_size),
      table_(&table),
      outputs_(outputs),
      dense_(declare_linear(table, name, outputs, config.hidden_size, config.initializer_range)) {}

void SequenceClassifier::reserve(MemoryPlan& memory, int64_t sequences, bool training,
                                 DType compute) {
  dropped_ = training ? memory.reserve(MemoryKind::kHead, compute, {sequences, hidden_}) : Tensor();
  logits_ = memory.reserve(MemoryKind::kHead, compute, {sequences, outputs_});
  losses_ = memory.reserve(MemoryKind::kHead, DType::kF32, {sequences});
  correct_ = memory.reserve(MemoryKind::kHead, DType::kU8, {sequences});
}

View SequenceClassifier::logits(Context& context, ConstView pooled) const {
  const View result = rows_of(logits_, pooled.extent(0));
  ops::linear(context, {.x = pooled,
                        .weight = table_->compute_value(dense_.weight),
                        .bias = bias_to_add(context, *table_, dense_.bias),
                        .y = result});
  return result;
}

void SequenceClassifier::output_loss(Context& context, const Loss& call, View scores) const {
  const int64_t sequences = scores.extent(0);
  const bool training = !call.grad_pooled.empty();
  if (call.kind == LabelKind::kClass) {
    ops::cross_entropy(context, {.logits = scores,
                                 .classes = outputs_,
                                 .targets = call.targets,
                                 .write_gradient = training,
                                 .gradient_scale = call.gradient_scale,
                                 .losses = losses(sequences),
                                 .correct = correct(sequences),
                                 .class_weights = call.weights});
    return;
  }
  ops::label_loss(context, {.kind = call.kind == LabelKind::kLabels ? ops::LabelLossKind::kSigmoid
                                                                    : ops::LabelLossKind::kSquared,
                            .logits = scores,
                            .targets = call.targets,
                            .positive_weights = call.weights,
                            .write_gradient = training,
                            .gradient_scale = call.gradient_scale,
                            .losses = losses(sequences)});
}

void SequenceClassifier::loss(Context& context, const Loss& call) const {
  const PhaseSpan phase(context, kHeadsForward);
  const int64_t sequences = call.pooled.extent(0);
  const bool training = !call.grad_pooled.empty();
  ConstView input = call.pooled;
  if (call.dropout.probability > 0) {
    const View dropped = rows_of(dropped_, sequences);
    ops::dropout(context, {.x = input, .dropout = call.dropout, .y = dropped});
    input = dropped;
  }
  const View scores = logits(context, input);
  output_loss(context, call, scores);
  if (!training) return;
  const PhaseSpan backward(context, kHeadsBackward);
  ops::linear_backward_weight(context, weight_gradient(*table_, dense_.weight, scores, input,
                                                       table_->gradient(dense_.bias)));
  ops::linear_backward_input(context, {.grad_y = scores,
                                       .weight = table_->compute_value(dense_.weight),
                                       .grad_x = call.grad_pooled});
  if (call.dropout.probability > 0) {
    ops::dropout_backward(
        context, {.grad_y = call.grad_pooled, .dropout = call.dropout, .grad_x = call.grad_pooled});
  }
}

}  // namespace onebit::model
