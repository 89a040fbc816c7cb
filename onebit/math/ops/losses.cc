#include "onebit/math/ops/losses.h"

#include <algorithm>

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const CrossEntropy& a) {
  return kernels::moves(a.logits, a.write_gradient ? a.logits : View(), a.targets, a.losses);
}

ONEBIT_DEVICE_OP(void, cross_entropy, const CrossEntropy&);

void cross_entropy(Context& context, const CrossEntropy& a) {
  const kernels::ArgumentCheck check(context, "cross_entropy");
  check.leading("logits", a.logits, 2);
  const int64_t rows = a.logits.extent(0);
  check.that(1 <= a.classes && a.classes <= a.logits.extent(1),
             "classes must be between 1 and the number of columns");
  check.view("targets", a.targets, DType::kI32, {rows});
  check.view("losses", a.losses, DType::kF32, {rows});
  check.optional("correct", a.correct, DType::kU8, {rows});
  check.optional("class_weights", a.class_weights, DType::kF32, {a.classes});
  on_device::cross_entropy(context, a);
}

static Work work_of(const LabelLoss& a) {
  return kernels::moves(a.logits, a.write_gradient ? a.logits : View(), a.targets, a.losses);
}

ONEBIT_DEVICE_OP(void, label_loss, const LabelLoss&);

void label_loss(Context& context, const LabelLoss& a) {
  const kernels::ArgumentCheck check(context, "label_loss");
  check.leading("logits", a.logits, 2);
  const int64_t rows = a.logits.extent(0), columns = a.logits.extent(1);
  check.that(columns >= 1, "there must be at least one column");
  check.view("targets", a.targets, DType::kF32, {rows, columns});
  check.optional("positive_weights", a.positive_weights, DType::kF32, {columns});
  check.that(a.positive_weights.empty() || a.kind == LabelLossKind::kSigmoid,
             "positive_weights are only for the sigmoid loss");
  check.view("losses", a.losses, DType::kF32, {rows});
  on_device::label_loss(context, a);
}

static Work work_of(const SpanCrossEntropy& a) {
  return kernels::moves(a.logits, a.write_gradient ? a.logits : View(), a.targets, a.losses);
}

ONEBIT_DEVICE_OP(void, span_cross_entropy, const SpanCrossEntropy&);

void span_cross_entropy(Context& context, const SpanCrossEntropy& a) {
  const kernels::ArgumentCheck check(context, "span_cross_entropy");
  check.leading("logits", a.logits, 2);
  const int64_t rows = a.logits.extent(0), columns = a.logits.extent(1);
  const auto& starts = a.sequence_starts;
  const int64_t batch = static_cast<int64_t>(starts.host.size()) - 1;
  check.that(batch >= 0, "sequence_starts.host must have batch + 1 elements");
  check.view("sequence_starts.device", starts.device, DType::kI32, {batch + 1});
  check.that(starts.host.front() == 0 && starts.host.back() == rows &&
                 std::is_sorted(starts.host.begin(), starts.host.end()),
             "sequence_starts must ascend from 0 to the number of rows");
  check.view("targets", a.targets, DType::kI32, {columns, batch});
  check.view("losses", a.losses, DType::kF32, {columns, batch});
  on_device::span_cross_entropy(context, a);
}

}  // namespace onebit::ops
