#include "onebit/ops/reduce.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {

double squared_norm(Context& context, ConstView x) {
  ArgumentCheck(context, "squared_norm").view("x", x, DType::kF32, x.shape());
  return run_on_device(context, &cpu::squared_norm, &cuda::squared_norm, x);
}

double absolute_sum(Context& context, ConstView x) {
  ArgumentCheck(context, "absolute_sum").view("x", x, DType::kF32, x.shape());
  return run_on_device(context, &cpu::absolute_sum, &cuda::absolute_sum, x);
}

double dot(Context& context, ConstView a, ConstView b) {
  const ArgumentCheck check(context, "dot");
  check.view("a", a, DType::kF32, a.shape());
  check.view("b", b, DType::kF32, b.shape());
  check.that(a.elements() == b.elements(), "a and b must have equal numbers of elements");
  return run_on_device(context, &cpu::dot, &cuda::dot, a, b);
}

double sum(Context& context, ConstView x) {
  ArgumentCheck(context, "sum").view("x", x, DType::kF32, x.shape());
  return run_on_device(context, &cpu::sum, &cuda::sum, x);
}

bool all_finite(Context& context, ConstView x) {
  const ArgumentCheck check(context, "all_finite");
  check.floating("x", x);
  check.view("x", x, x.dtype(), x.shape());
  return run_on_device(context, &cpu::all_finite, &cuda::all_finite, x);
}

void column_sum(Context& context, const ColumnSum& a) {
  const ArgumentCheck check(context, "column_sum");
  check.leading("x", a.x, 2);
  check.view("sum", a.sum, DType::kF32, {a.x.extent(1)});
  run_on_device(context, &cpu::column_sum, &cuda::column_sum, a);
}

}  // namespace onebit::ops
