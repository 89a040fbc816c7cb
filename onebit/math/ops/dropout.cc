#include "onebit/math/ops/dropout.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const DropoutForward& a) {
  return kernels::moves(a.x, a.y);
}

ONEBIT_DEVICE_OP(void, dropout, const DropoutForward&);

void dropout(Context& context, const DropoutForward& a) {
  const kernels::ArgumentCheck check(context, "dropout");
  check.leading("x", a.x, 2);
  check.view("y", a.y, a.x.dtype(), a.x.shape());
  check.dropout(a.dropout, a.x.extent(0));
  on_device::dropout(context, a);
}

// The mask does not depend on the values it is applied to.
void dropout_backward(Context& context, const DropoutBackward& a) {
  dropout(context, {.x = a.grad_y, .dropout = a.dropout, .y = a.grad_x});
}

}  // namespace onebit::ops
