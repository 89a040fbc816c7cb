#include "onebit/ops/activation.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {

void activation(Context& context, const Activation& a) {
  const ArgumentCheck check(context, "activation");
  check.leading("x", a.x, 2);
  check.view("y", a.y, a.x.dtype(), a.x.shape());
  run_on_device(context, &cpu::activation, &cuda::activation, a);
}

void activation_backward(Context& context, const ActivationBackward& a) {
  const ArgumentCheck check(context, "activation_backward");
  check.leading("grad_y", a.grad_y, 2);
  check.view("saved", a.saved, a.grad_y.dtype(), a.grad_y.shape());
  check.view("grad_x", a.grad_x, a.grad_y.dtype(), a.grad_y.shape());
  check.optional("grad_bias", a.grad_bias, DType::kF32, {a.grad_y.extent(1)});
  run_on_device(context, &cpu::activation_backward, &cuda::activation_backward, a);
}

}  // namespace onebit::ops
