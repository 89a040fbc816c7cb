#include "onebit/math/ops/span_cross_entropy.h"

#include <algorithm>

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const SpanCrossEntropy& a) {
  return kernels::moves(a.logits, a.write_gradient ? a.logits : View(), a.targets, a.losses);
}

ONEBIT_DEVICE_OP(void, span_cross_entropy, const SpanCrossEntropy&);

void span_cross_entropy(Context& context, const SpanCrossEntropy& a) {
  const kernels::ArgumentCheck check(context, "span_cross_entropy");
  check.leading("logits", a.logits, 2);
  const int64_t rows = a.logits.extent(0), columns = a.logits.extent(1);
  const auto& starts = a.sequence_starts;
  const int64_t batch = static_cast<int64_t>(starts.host.size()) - 1;
  check.that(batch >= 0, "sequence_starts.host must have batch + 1 elements");
  check.view("sequence_starts.device", starts.device, DType::kI32, {batch + 1});
  check.that(starts.host.front() == 0 && starts.host.back() == rows &&
                 std::is_sorted(starts.host.begin(), starts.host.end()),
             "sequence_starts must ascend from 0 to the number of rows");
  check.view("targets", a.targets, DType::kI32, {columns, batch});
  check.view("losses", a.losses, DType::kF32, {columns, batch});
  on_device::span_cross_entropy(context, a);
}

}  // namespace onebit::ops
