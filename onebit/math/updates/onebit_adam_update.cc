#include "onebit/math/updates/onebit_adam_update.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"
#include "onebit/math/updates/adam_update.h"

namespace onebit::updates {

static Work work_of(const OnebitFreeze& a) {
  return kernels::moves(a.momentum, a.momentum, a.variance, a.variance, a.still);
}
// Views of the whole buffer are only used in the range of `normalized`.
static Work work_of(const OnebitNormalize& a) {
  const View part = a.normalized;
  return kernels::moves(part, part, part, part, a.ranges.empty() ? View() : part);
}
static Work work_of(const OnebitMomentum& a) {
  return a.normalized.empty() ? kernels::moves(a.extra)
                              : kernels::moves(a.normalized, a.normalized, a.normalized);
}
static Work work_of(const OnebitStep& a) {
  return kernels::moves(a.value, a.value, a.momentum, a.still, a.compute_value);
}

ONEBIT_DEVICE_OP(void, onebit_freeze, const OnebitFreeze&);
ONEBIT_DEVICE_OP(void, onebit_normalize, const OnebitNormalize&);
ONEBIT_DEVICE_OP(void, onebit_momentum, const OnebitMomentum&);
ONEBIT_DEVICE_OP(void, onebit_step, const OnebitStep&);

namespace {

Shape blocks_of(int64_t elements) {
  return {kernels::blocks_in(elements)};
}

// The last block has all of its sub-blocks, though the last ones may be empty.
Shape sub_blocks_of(int64_t elements) {
  return {blocks_of(elements)[0] * kernels::kSubBlocks};
}

Shape bitmap_of(int64_t elements) {
  return {(elements + 7) / 8};
}

void check_flat(const kernels::ArgumentCheck& check, int64_t elements) {
  check.that(elements % 16 == 0, "the number of elements must be a multiple of 16");
}

void check_blocks(const kernels::ArgumentCheck& check, int64_t begin, int64_t end,
                  int64_t elements) {
  const bool inside = begin >= 0 && begin <= end && end <= elements;
  const bool whole = begin % kernels::kBlockElements == 0 &&
                     (end % kernels::kBlockElements == 0 || end == elements);
  check.that(inside && whole, "begin and end must select whole blocks of the buffer");
}

}  // namespace

void onebit_freeze(Context& context, const OnebitFreeze& a) {
  const kernels::ArgumentCheck check(context, "onebit_freeze");
  const int64_t elements = a.momentum.elements();
  check_flat(check, elements);
  check.view("momentum", a.momentum, DType::kF32, {elements});
  check.view("variance", a.variance, DType::kF32, {elements});
  check.view("still", a.still, DType::kU8, bitmap_of(elements));
  on_device::onebit_freeze(context, a);
}

void onebit_normalize(Context& context, const OnebitNormalize& a) {
  const kernels::ArgumentCheck check(context, "onebit_normalize");
  const int64_t elements = a.gradient.elements();
  check_flat(check, elements);
  check.view("gradient", a.gradient, DType::kF32, {elements});
  check.view("variance", a.variance, DType::kF32, {elements});
  check.view("normalized", a.normalized, DType::kF32, {a.end - a.begin});
  check.view("block_square", a.block_square, DType::kF64, blocks_of(elements));
  check.view("block_flags", a.block_flags, DType::kU8, blocks_of(elements));
  if (!a.alone) {
    if (a.turn != kNoTurn) {
      check.view("extra", a.extra, DType::kF32, blocks_of(a.end - a.begin));
    }
    check.view("own_weight", a.own_weight, DType::kF32, sub_blocks_of(elements));
    check.view("energy", a.energy, DType::kF32, sub_blocks_of(elements));
    check.view("block_ratio", a.block_ratio, DType::kF32, blocks_of(elements));
    check.view("sketch", a.sketch, DType::kF32, blocks_of(elements));
    check.view("block_energy", a.block_energy, DType::kF32, blocks_of(elements));
    check.view("block_variance", a.block_variance, DType::kF32, blocks_of(elements));
    check.that(a.turn >= kNoTurn && a.turn <= kernels::kSubBlocks,
               "turn must name a sub-block, the sketch, or nothing");
    check.that(a.sketch_shift % kernels::kBlockElements == 0, "sketch_shift must be whole blocks");
  }
  check_blocks(check, a.begin, a.end, elements);
  if (!a.ranges.empty()) {
    check.view("value", a.value, DType::kF32, {elements});
    check_ranges(a.ranges, elements);
  }
  on_device::onebit_normalize(context, a);
}

void onebit_momentum(Context& context, const OnebitMomentum& a) {
  const kernels::ArgumentCheck check(context, "onebit_momentum");
  const int64_t elements = a.variance.elements();
  check_flat(check, elements);
  check.optional("momentum", a.momentum, DType::kF32, {elements});
  check.view("variance", a.variance, DType::kF32, {elements});
  check.that(a.normalized.empty() || !a.momentum.empty(), "`normalized` needs a momentum");
  check.optional("normalized", a.normalized, DType::kF32, {a.end - a.begin});
  check.optional("extra", a.extra, DType::kF32, blocks_of(a.end - a.begin));
  check.that(a.turn >= 0 && a.turn <= kernels::kSubBlocks,
             "turn must name a sub-block or the sketch");
  check_blocks(check, a.begin, a.end, elements);
  on_device::onebit_momentum(context, a);
}

void onebit_step(Context& context, const OnebitStep& a) {
  const kernels::ArgumentCheck check(context, "onebit_step");
  const int64_t elements = a.value.elements();
  check.view("value", a.value, DType::kF32, {elements});
  check.optional("compute_value", a.compute_value, a.compute_value.dtype(), {elements});
  check.view("momentum", a.momentum, DType::kF32, {elements});
  check.view("still", a.still, DType::kU8, bitmap_of(elements));
  check_ranges(a.ranges, elements);
  on_device::onebit_step(context, a);
}

}  // namespace onebit::updates
