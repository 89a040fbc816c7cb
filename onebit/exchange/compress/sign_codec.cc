#include "onebit/exchange/compress/sign_codec.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/error.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::compress {

static_assert(kHeaderBytes == 8 && kHeaderBytes % kChunkAlignment == 0);
static_assert(offsetof(BlockHeader, extra) == sizeof(uint16_t) &&
              offsetof(BlockHeader, codes) == kChunkAlignment);
static_assert(kSubBlocks * kCodeBits == 8 * sizeof(BlockHeader::codes));

// An owner sends its momentum plus this share of the momentum's last change. The residual is not
// Gaussian, so that with kSignGain the signs of a worker transmit 0.945 and an owner's 0.92 of a
// small signal at once (by simulation), the rest in the next steps: g / (1 - (1 - g) / z) each. The
// inverse of both is, to first order, 1 + lead (1 - 1 / z) with lead = 0.055 / 0.945 + 0.08 / 0.92.
// Without the lead the largest stable curvature is 8 over the learning rate where Adam's is 38,
// with it 38 (docs/compression.md).
static constexpr float kMomentumLead = 0.145f;

// The work on a part of a chunk's blocks, as a share of that on the blocks of `elements`.
static Work part_of(const Work& whole, BlockRange part, int64_t elements) {
  const int64_t blocks = blocks_in(elements);
  Work work = whole;
  if (blocks > 0) {
    work.bytes *= static_cast<double>(part.end - part.begin) / static_cast<double>(blocks);
  }
  return work;
}

static Work work_of(const Encode& a) {
  return part_of(kernels::moves(a.values, a.residual, a.residual, a.still, a.chunk), a.blocks,
                 a.values.elements());
}
static Work work_of(const Average& a) {
  return part_of(
      kernels::moves(a.chunks, a.residual, a.residual, a.still, a.chunk, a.momentum, a.momentum),
      a.blocks, a.residual.elements());
}
static Work work_of(const Decode& a) {
  if (a.values.empty()) return part_of(kernels::moves(a.extras), a.blocks, a.elements);
  Work work = part_of(kernels::moves(a.chunk, a.still), a.blocks, a.elements);
  work.bytes += kernels::moves(a.values).bytes;
  return work;
}

ONEBIT_DEVICE_OP(void, encode, const Encode&);
ONEBIT_DEVICE_OP(void, average, const Average&);
ONEBIT_DEVICE_OP(void, decode, const Decode&);

namespace {

void check(const Context& context, ConstView view, DType dtype, int64_t elements) {
  ONEBIT_INVARIANT(view.dtype() == dtype && view.elements() == elements);
  ONEBIT_INVARIANT(elements == 0 || view.device() == context.device());
}

void check_optional(const Context& context, ConstView view, DType dtype, int64_t elements) {
  if (!view.empty()) check(context, view, dtype, elements);
}

void check_blocks(BlockRange part, int64_t elements) {
  ONEBIT_INVARIANT(part.begin >= 0 && part.begin <= part.end && part.end <= blocks_in(elements));
}

}  // namespace

MomentumStep momentum_step(double beta1, int64_t updates, double limit) {
  if (updates == 1) {
    return {.beta = beta1, .weight = 1 - beta1, .lead = kMomentumLead, .limit = limit};
  }
  // With a = average / updates, the momentum after update j is beta^j before + (1 - beta^j) a,
  // their mean kept before + (1 - kept) a, and after - before is (1 - beta^updates) (a - before).
  const auto count = static_cast<double>(updates);
  const double beta = std::pow(beta1, count);
  const double kept = beta1 * (1 - beta) / (count * (1 - beta1));
  return {.beta = beta,
          .weight = (1 - beta) / count,
          .lead = kMomentumLead + (1 - kept) / (1 - beta) - 1,
          .limit = limit};
}

void encode(Context& context, const Encode& args) {
  const int64_t elements = args.values.elements();
  check(context, args.values, DType::kF32, elements);
  check(context, args.residual, DType::kF32, elements);
  check(context, args.chunk, DType::kU8, chunk_bytes(elements));
  check_optional(context, args.still, DType::kU8, sign_bytes(elements));
  check_optional(context, args.block_squares, DType::kF64, 2 * blocks_in(elements));
  check_optional(context, args.extras, DType::kF32, blocks_in(elements));
  check_blocks(args.blocks, elements);
  on_device::encode(context, args);
}

void average(Context& context, const Average& args) {
  const int64_t elements = args.residual.elements();
  const int64_t size_bytes = chunk_bytes(elements);
  check(context, args.residual, DType::kF32, elements);
  check(context, args.chunk, DType::kU8, size_bytes);
  check(context, args.chunks, DType::kU8, args.chunks.extent(0) * size_bytes);
  check_optional(context, args.still, DType::kU8, sign_bytes(elements));
  check_optional(context, args.block_squares, DType::kF64, 2 * blocks_in(elements));
  check_optional(context, args.momentum, DType::kF32, elements);
  check_blocks(args.blocks, elements);
  on_device::average(context, args);
}

Range elements_of(BlockRange blocks, int64_t elements) {
  return {std::min(blocks.begin * kBlockElements, elements),
          std::min(blocks.end * kBlockElements, elements)};
}

void decode(Context& context, const Decode& args) {
  const int64_t elements = args.elements;
  check_blocks(args.blocks, elements);
  check(context, args.chunk, DType::kU8, chunk_bytes(elements));
  check_optional(context, args.still, DType::kU8, sign_bytes(elements));
  check_optional(context, args.values, DType::kF32, elements_of(args.blocks, elements).elements());
  check_optional(context, args.extras, DType::kF32, blocks_in(elements));
  on_device::decode(context, args);
}

}  // namespace onebit::compress
