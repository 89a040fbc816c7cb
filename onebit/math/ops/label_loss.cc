#include "onebit/math/ops/label_loss.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

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

}  // namespace onebit::ops
