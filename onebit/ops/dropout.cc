#include "onebit/ops/dropout.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {

void dropout(Context& context, const DropoutForward& a) {
  const ArgumentCheck check(context, "dropout");
  check.leading("x", a.x, 2);
  check.view("y", a.y, a.x.dtype(), a.x.shape());
  check.dropout(a.dropout, a.x.extent(0));
  run_on_device(context, &cpu::dropout, &cuda::dropout, a);
}

// The mask does not depend on what it is applied to.
void dropout_backward(Context& context, const DropoutBackward& a) {
  dropout(context, {.x = a.grad_y, .dropout = a.dropout, .y = a.grad_x});
}

}  // namespace onebit::ops
