#include "onebit/ops/adam_update.h"

#include "onebit/base/error.h"

namespace onebit::ops {

namespace cpu {
void adam_update(Context&, const AdamUpdate&);
}

namespace {

void check_flat(ConstView view, const Context& context, int64_t elements) {
  ONEBIT_INVARIANT(view.dtype() == DType::kF32);
  ONEBIT_INVARIANT(view.device() == context.device());
  ONEBIT_INVARIANT(view.elements() == elements);
}

}  // namespace

void check_ranges(std::span<const UpdateRange> ranges, int64_t elements) {
  int64_t end = 0;
  for (const UpdateRange& range : ranges) {
    ONEBIT_INVARIANT(range.begin == end && range.end > range.begin);
    ONEBIT_INVARIANT(range.end % 16 == 0);
    end = range.end;
  }
  ONEBIT_INVARIANT(end == elements);
}

void adam_update(Context& context, const AdamUpdate& args) {
  const int64_t elements = args.value.elements();
  for (const ConstView& view :
       {ConstView(args.value), args.gradient, ConstView(args.momentum), ConstView(args.variance)}) {
    check_flat(view, context, elements);
  }
  if (!args.compute_value.empty()) {
    const DType type = args.compute_value.dtype();
    ONEBIT_INVARIANT(type == DType::kBF16 || type == DType::kF16);
    ONEBIT_INVARIANT(args.compute_value.elements() == elements);
  }
  check_ranges(args.ranges, elements);
  require(context.device().is_cpu(), "adam_update has no implementation for CUDA devices yet");
  cpu::adam_update(context, args);
}

}  // namespace onebit::ops
