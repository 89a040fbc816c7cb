#include "onebit/math/ops/activation.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const Activation& a) {
  return kernels::moves(a.x, a.y);
}
static Work work_of(const ActivationBackward& a) {
  return kernels::moves(a.grad_y, a.saved, a.grad_x);
}

static Work work_of(const GatedActivation& a) {
  return kernels::moves(a.x, a.y);
}
static Work work_of(const GatedActivationBackward& a) {
  return kernels::moves(a.grad_y, a.x, a.grad_x);
}

ONEBIT_DEVICE_OP(void, activation, const Activation&);
ONEBIT_DEVICE_OP(void, activation_backward, const ActivationBackward&);
ONEBIT_DEVICE_OP(void, gated_activation, const GatedActivation&);
ONEBIT_DEVICE_OP(void, gated_activation_backward, const GatedActivationBackward&);

void activation(Context& context, const Activation& a) {
  const kernels::ArgumentCheck check(context, "activation");
  check.leading("x", a.x, 2);
  check.view("y", a.y, a.x.dtype(), a.x.shape());
  on_device::activation(context, a);
}

void activation_backward(Context& context, const ActivationBackward& a) {
  const kernels::ArgumentCheck check(context, "activation_backward");
  check.leading("grad_y", a.grad_y, 2);
  check.view("saved", a.saved, a.grad_y.dtype(), a.grad_y.shape());
  check.view("grad_x", a.grad_x, a.grad_y.dtype(), a.grad_y.shape());
  check.optional("grad_bias", a.grad_bias, DType::kF32, {a.grad_y.extent(1)});
  on_device::activation_backward(context, a);
}

void gated_activation(Context& context, const GatedActivation& a) {
  const kernels::ArgumentCheck check(context, "gated_activation");
  check.leading("y", a.y, 2);
  check.view("x", a.x, a.y.dtype(), {a.y.extent(0), 2 * a.y.extent(1)});
  on_device::gated_activation(context, a);
}

void gated_activation_backward(Context& context, const GatedActivationBackward& a) {
  const kernels::ArgumentCheck check(context, "gated_activation_backward");
  check.leading("grad_y", a.grad_y, 2);
  const Shape shape{a.grad_y.extent(0), 2 * a.grad_y.extent(1)};
  check.view("x", a.x, a.grad_y.dtype(), shape);
  check.view("grad_x", a.grad_x, a.grad_y.dtype(), shape);
  check.optional("grad_bias", a.grad_bias, DType::kF32, {shape[1]});
  on_device::gated_activation_backward(context, a);
}

}  // namespace onebit::ops
