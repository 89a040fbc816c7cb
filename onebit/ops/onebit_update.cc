#include "onebit/ops/onebit_update.h"

#include "onebit/base/error.h"

namespace onebit::ops {

namespace cpu {
void onebit_freeze(Context&, const OnebitFreeze&);
void onebit_energy(Context&, const OnebitEnergy&);
void onebit_momentum(Context&, const OnebitMomentum&);
void onebit_step(Context&, const OnebitStep&);
}  // namespace cpu

namespace {

void check(const Context& context, ConstView view, DType type, int64_t elements) {
  ONEBIT_INVARIANT(view.dtype() == type);
  ONEBIT_INVARIANT(view.device() == context.device());
  ONEBIT_INVARIANT(view.elements() == elements);
}

int64_t blocks_of(int64_t elements) {
  return (elements + kUpdateBlockElements - 1) / kUpdateBlockElements;
}

void check_blocks(int64_t begin, int64_t end, int64_t elements) {
  ONEBIT_INVARIANT(begin >= 0 && begin <= end && end <= elements);
  ONEBIT_INVARIANT(begin % kUpdateBlockElements == 0);
  ONEBIT_INVARIANT(end % kUpdateBlockElements == 0 || end == elements);
}

void require_cpu(const Context& context, const char* name) {
  require(context.device().is_cpu(), "{} has no implementation for CUDA devices yet", name);
}

}  // namespace

void onebit_freeze(Context& context, const OnebitFreeze& args) {
  const int64_t elements = args.momentum.elements();
  check(context, args.momentum, DType::kF32, elements);
  check(context, args.variance, DType::kF32, elements);
  check(context, args.still, DType::kU8, (elements + 7) / 8);
  ONEBIT_INVARIANT(elements % 16 == 0);
  require_cpu(context, "onebit_freeze");
  cpu::onebit_freeze(context, args);
}

void onebit_energy(Context& context, const OnebitEnergy& args) {
  const int64_t elements = args.gradient.elements();
  check(context, args.gradient, DType::kF32, elements);
  check(context, args.variance, DType::kF32, elements);
  check(context, args.block_energy, DType::kF32, blocks_of(elements));
  check_blocks(args.begin, args.end, elements);
  ONEBIT_INVARIANT(elements % 16 == 0);
  require_cpu(context, "onebit_energy");
  cpu::onebit_energy(context, args);
}

void onebit_momentum(Context& context, const OnebitMomentum& args) {
  const int64_t elements = args.momentum.elements();
  check(context, args.momentum, DType::kF32, elements);
  check(context, args.inverse, DType::kF32, elements);
  check(context, args.gradient, DType::kF32, elements);
  check(context, args.block_energy, DType::kF32, blocks_of(elements));
  check(context, args.block_square, DType::kF64, blocks_of(elements));
  check(context, args.block_flags, DType::kU8, blocks_of(elements));
  check_blocks(args.begin, args.end, elements);
  ONEBIT_INVARIANT(elements % 16 == 0);
  if (!args.ranges.empty()) {
    check(context, args.value, DType::kF32, elements);
    check_ranges(args.ranges, elements);
  }
  require_cpu(context, "onebit_momentum");
  cpu::onebit_momentum(context, args);
}

void onebit_step(Context& context, const OnebitStep& args) {
  const int64_t elements = args.value.elements();
  check(context, args.value, DType::kF32, elements);
  check(context, args.momentum, DType::kF32, elements);
  check(context, args.still, DType::kU8, (elements + 7) / 8);
  check(context, args.block_factor, DType::kF32, blocks_of(elements));
  if (!args.inverse.empty()) check(context, args.inverse, DType::kF32, elements);
  if (!args.compute_value.empty()) {
    check(context, args.compute_value, args.compute_value.dtype(), elements);
  }
  check_ranges(args.ranges, elements);
  require_cpu(context, "onebit_step");
  cpu::onebit_step(context, args);
}

}  // namespace onebit::ops
