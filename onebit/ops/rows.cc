#include "onebit/ops/rows.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {

void gather_rows(Context& context, const GatherRows& a) {
  const ArgumentCheck check(context, "gather_rows");
  check.that(a.x.shape().rank() == 2 && a.y.shape().rank() == 2, "x and y must have 2 axes");
  check.view("x", a.x, a.x.dtype(), a.x.shape());
  check.view("y", a.y, a.x.dtype(), {a.y.extent(0), a.x.extent(1)});
  check.view("indices", a.indices, DType::kI32, {a.y.extent(0)});
  run_on_device(context, &cpu::gather_rows, &cuda::gather_rows, a);
}

void scatter_add_rows(Context& context, const ScatterAddRows& a) {
  const ArgumentCheck check(context, "scatter_add_rows");
  check.leading("x", a.x, 2);
  check.leading("y", a.y, 2);
  check.view("y", a.y, a.x.dtype(), {a.y.extent(0), a.x.extent(1)});
  check.view("indices", a.indices, DType::kI32, {a.x.extent(0)});
  run_on_device(context, &cpu::scatter_add_rows, &cuda::scatter_add_rows, a);
}

}  // namespace onebit::ops
