#include "onebit/math/model/sequence_states.h"

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/elementwise.h"
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

}  // namespace onebit::model
