#include "onebit/ops/onebit_update.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {
namespace {

Shape blocks_of(int64_t elements) {
  return {(elements + kUpdateBlockElements - 1) / kUpdateBlockElements};
}

// Whole blocks have all of their sub-blocks, though the last ones may be empty.
Shape sub_blocks_of(int64_t elements) {
  return {blocks_of(elements)[0] * kUpdateSubBlocks};
}

Shape bitmap_of(int64_t elements) {
  return {(elements + 7) / 8};
}

void check_flat(const ArgumentCheck& check, int64_t elements) {
  check.that(elements % 16 == 0, "the number of elements must be a multiple of 16");
}

void check_blocks(const ArgumentCheck& check, int64_t begin, int64_t end, int64_t elements) {
  const bool inside = begin >= 0 && begin <= end && end <= elements;
  const bool whole =
      begin % kUpdateBlockElements == 0 && (end % kUpdateBlockElements == 0 || end == elements);
  check.that(inside && whole, "begin and end must cut whole blocks out of the buffer");
}

}  // namespace

void onebit_freeze(Context& context, const OnebitFreeze& a) {
  const ArgumentCheck check(context, "onebit_freeze");
  const int64_t elements = a.momentum.elements();
  check_flat(check, elements);
  check.view("momentum", a.momentum, DType::kF32, {elements});
  check.view("variance", a.variance, DType::kF32, {elements});
  check.view("still", a.still, DType::kU8, bitmap_of(elements));
  run_on_device(context, &cpu::onebit_freeze, &cuda::onebit_freeze, a);
}

void onebit_normalize(Context& context, const OnebitNormalize& a) {
  const ArgumentCheck check(context, "onebit_normalize");
  const int64_t elements = a.gradient.elements();
  check_flat(check, elements);
  check.view("gradient", a.gradient, DType::kF32, {elements});
  check.view("variance", a.variance, DType::kF32, {elements});
  check.view("normalized", a.normalized, DType::kF32, {a.end - a.begin});
  check.view("block_square", a.block_square, DType::kF64, blocks_of(elements));
  check.view("block_flags", a.block_flags, DType::kU8, blocks_of(elements));
  if (!a.alone) {
    check.view("extra", a.extra, DType::kF32, blocks_of(a.end - a.begin));
    check.view("own_weight", a.own_weight, DType::kF32, sub_blocks_of(elements));
    check.view("energy", a.energy, DType::kF32, sub_blocks_of(elements));
    check.view("block_ratio", a.block_ratio, DType::kF32, blocks_of(elements));
    check.view("sketch", a.sketch, DType::kF32, blocks_of(elements));
    check.view("block_energy", a.block_energy, DType::kF32, blocks_of(elements));
    check.view("block_variance", a.block_variance, DType::kF32, blocks_of(elements));
    check.that(a.turn >= 0 && a.turn <= kUpdateSubBlocks,
               "turn must name a sub-block or the sketch");
  }
  check_blocks(check, a.begin, a.end, elements);
  if (!a.ranges.empty()) {
    check.view("value", a.value, DType::kF32, {elements});
    check_ranges(a.ranges, elements);
  }
  run_on_device(context, &cpu::onebit_normalize, &cuda::onebit_normalize, a);
}

void onebit_momentum(Context& context, const OnebitMomentum& a) {
  const ArgumentCheck check(context, "onebit_momentum");
  const int64_t elements = a.momentum.elements();
  check_flat(check, elements);
  check.view("momentum", a.momentum, DType::kF32, {elements});
  check.view("variance", a.variance, DType::kF32, {elements});
  check.optional("normalized", a.normalized, DType::kF32, {a.end - a.begin});
  check.optional("extra", a.extra, DType::kF32, blocks_of(a.end - a.begin));
  check.that(a.turn >= 0 && a.turn <= kUpdateSubBlocks, "turn must name a sub-block or the sketch");
  check_blocks(check, a.begin, a.end, elements);
  run_on_device(context, &cpu::onebit_momentum, &cuda::onebit_momentum, a);
}

void onebit_step(Context& context, const OnebitStep& a) {
  const ArgumentCheck check(context, "onebit_step");
  const int64_t elements = a.value.elements();
  check.view("value", a.value, DType::kF32, {elements});
  check.optional("compute_value", a.compute_value, a.compute_value.dtype(), {elements});
  check.view("momentum", a.momentum, DType::kF32, {elements});
  check.view("still", a.still, DType::kU8, bitmap_of(elements));
  check_ranges(a.ranges, elements);
  run_on_device(context, &cpu::onebit_step, &cuda::onebit_step, a);
}

}  // namespace onebit::ops
