#include "onebit/ops/adam_update.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {

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
  const ArgumentCheck check(context, "adam_update");
  const Shape flat{a.value.elements()};
  check.view("value", a.value, DType::kF32, flat);
  check.view("gradient", a.gradient, DType::kF32, flat);
  check.view("momentum", a.momentum, DType::kF32, flat);
  check.view("variance", a.variance, DType::kF32, flat);
  check.optional("compute_value", a.compute_value, a.compute_value.dtype(), flat);
  check_ranges(a.ranges, flat[0]);
  run_on_device(context, &cpu::adam_update, &cuda::adam_update, a);
}

}  // namespace onebit::ops
