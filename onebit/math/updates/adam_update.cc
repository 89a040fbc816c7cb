#include "onebit/math/updates/adam_update.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::updates {

static Work work_of(const AdamUpdate& a) {
  return kernels::moves(a.gradient, a.value, a.value, a.momentum, a.momentum, a.variance,
                        a.variance, a.compute_value);
}

ONEBIT_DEVICE_OP(void, adam_update, const AdamUpdate&);

void check_ranges(std::span<const UpdateRange> ranges, int64_t elements) {
  int64_t end = 0;
  for (const UpdateRange& range : ranges) {
    ONEBIT_INVARIANT(range.begin == end && range.end > range.begin);
    ONEBIT_INVARIANT(range.end % 16 == 0);
    end = range.end;
  }
  ONEBIT_INVARIANT(end == elements);
}

void adam_update(Context& context, const AdamUpdate& a) {
  const kernels::ArgumentCheck check(context, "adam_update");
  const Shape flat{a.value.elements()};
  check.view("value", a.value, DType::kF32, flat);
  check.view("gradient", a.gradient, DType::kF32, flat);
  check.view("momentum", a.momentum, DType::kF32, flat);
  check.view("variance", a.variance, DType::kF32, flat);
  check.optional("compute_value", a.compute_value, a.compute_value.dtype(), flat);
  check_ranges(a.ranges, flat[0]);
  on_device::adam_update(context, a);
}

}  // namespace onebit::updates
