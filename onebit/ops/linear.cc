#include "onebit/ops/linear.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {

void linear(Context& context, const Linear& a) {
  const ArgumentCheck check(context, "linear");
  check.leading("x", a.x, 2);
  check.leading("weight", a.weight, 2);
  const DType dtype = a.x.dtype();
  const int64_t rows = a.x.extent(0), in = a.x.extent(1), out = a.weight.extent(0);
  check.view("weight", a.weight, dtype, {out, in});
  check.optional("bias", a.bias, DType::kF32, {out});
  check.view("y", a.y, dtype, {rows, out});
  run_on_device(context, &cpu::linear, &cuda::linear, a);
}

void linear_backward_input(Context& context, const LinearBackwardInput& a) {
  const ArgumentCheck check(context, "linear_backward_input");
  check.leading("grad_y", a.grad_y, 2);
  check.leading("weight", a.weight, 2);
  const DType dtype = a.grad_y.dtype();
  const int64_t rows = a.grad_y.extent(0), out = a.grad_y.extent(1), in = a.weight.extent(1);
  check.view("weight", a.weight, dtype, {out, in});
  check.view("grad_x", a.grad_x, dtype, {rows, in});
  run_on_device(context, &cpu::linear_backward_input, &cuda::linear_backward_input, a);
}

void linear_backward_weight(Context& context, const LinearBackwardWeight& a) {
  const ArgumentCheck check(context, "linear_backward_weight");
  check.leading("grad_y", a.grad_y, 2);
  check.leading("x", a.x, 2);
  const int64_t rows = a.grad_y.extent(0), out = a.grad_y.extent(1), in = a.x.extent(1);
  check.view("x", a.x, a.grad_y.dtype(), {rows, in});
  check.view("grad_weight", a.grad_weight, DType::kF32, {out, in});
  check.optional("grad_bias", a.grad_bias, DType::kF32, {out});
  run_on_device(context, &cpu::linear_backward_weight, &cuda::linear_backward_weight, a);
}

bool bf16_is_native(Context& context) {
  return run_on_device(context, &cpu::bf16_is_native, &cuda::bf16_is_native);
}

}  // namespace onebit::ops
