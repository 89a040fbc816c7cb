#include "onebit/math/ops/reduce.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const ColumnSum& a) {
  return kernels::moves(a.x, a.sum, a.sum);
}

ONEBIT_DEVICE_OP(double, squared_norm, ConstView);
ONEBIT_DEVICE_OP(double, absolute_sum, ConstView);
ONEBIT_DEVICE_OP(bool, all_finite, ConstView);
ONEBIT_DEVICE_OP(void, column_sum, const ColumnSum&);

double squared_norm(Context& context, ConstView x) {
  kernels::ArgumentCheck(context, "squared_norm").view("x", x, DType::kF32, x.shape());
  return on_device::squared_norm(context, x);
}

double absolute_sum(Context& context, ConstView x) {
  kernels::ArgumentCheck(context, "absolute_sum").view("x", x, DType::kF32, x.shape());
  return on_device::absolute_sum(context, x);
}

bool all_finite(Context& context, ConstView x) {
  const kernels::ArgumentCheck check(context, "all_finite");
  check.floating("x", x);
  check.view("x", x, x.dtype(), x.shape());
  return on_device::all_finite(context, x);
}

void column_sum(Context& context, const ColumnSum& a) {
  const kernels::ArgumentCheck check(context, "column_sum");
  check.leading("x", a.x, 2);
  check.view("sum", a.sum, DType::kF32, {a.x.extent(1)});
  on_device::column_sum(context, a);
}

}  // namespace onebit::ops
