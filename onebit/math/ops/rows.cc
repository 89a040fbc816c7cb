#include "onebit/math/ops/rows.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const GatherRows& a) {
  return kernels::moves(a.y, a.y, a.indices);
}
static Work work_of(const ScatterAddRows& a) {
  return kernels::moves(a.x, a.x, a.x, a.indices);
}

ONEBIT_DEVICE_OP(void, gather_rows, const GatherRows&);
ONEBIT_DEVICE_OP(void, scatter_add_rows, const ScatterAddRows&);

void gather_rows(Context& context, const GatherRows& a) {
  const kernels::ArgumentCheck check(context, "gather_rows");
  check.that(a.x.shape().rank() == 2 && a.y.shape().rank() == 2, "x and y must have 2 axes");
  check.view("x", a.x, a.x.dtype(), a.x.shape());
  check.view("y", a.y, a.x.dtype(), {a.y.extent(0), a.x.extent(1)});
  check.view("indices", a.indices, DType::kI32, {a.y.extent(0)});
  on_device::gather_rows(context, a);
}

void scatter_add_rows(Context& context, const ScatterAddRows& a) {
  const kernels::ArgumentCheck check(context, "scatter_add_rows");
  check.leading("x", a.x, 2);
  check.leading("y", a.y, 2);
  check.view("y", a.y, a.x.dtype(), {a.y.extent(0), a.x.extent(1)});
  check.view("indices", a.indices, DType::kI32, {a.x.extent(0)});
  on_device::scatter_add_rows(context, a);
}

}  // namespace onebit::ops
