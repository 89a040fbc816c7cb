#include "onebit/math/updates/lamb_update.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::updates {

// Work of both passes: the second reads values and moments once more.
static Work work_of(const LambUpdate& a) {
  return kernels::moves(a.gradient, a.value, a.momentum, a.momentum, a.variance, a.variance,
                        a.value, a.value, a.momentum, a.variance, a.compute_value);
}

ONEBIT_DEVICE_OP(void, lamb_update, const LambUpdate&);

void lamb_update(Context& context, const LambUpdate& a) {
  const kernels::ArgumentCheck check(context, "lamb_update");
  const Shape flat{a.value.elements()};
  check.view("value", a.value, DType::kF32, flat);
  check.view("gradient", a.gradient, DType::kF32, flat);
  check.view("momentum", a.momentum, DType::kF32, flat);
  check.view("variance", a.variance, DType::kF32, flat);
  check.view("ratio", a.ratio, DType::kF32, {static_cast<int64_t>(a.tensors.size())});
  check.optional("compute_value", a.compute_value, a.compute_value.dtype(), flat);
  kernels::check_lamb_tensors(a.tensors, flat[0]);
  ONEBIT_INVARIANT(a.min_ratio >= 0 && a.max_ratio >= a.min_ratio);
  on_device::lamb_update(context, a);
}

}  // namespace onebit::updates
