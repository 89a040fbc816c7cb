#include "onebit/math/ops/cross_entropy.h"

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

}  // namespace onebit::ops
