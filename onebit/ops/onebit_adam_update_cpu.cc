#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/ops/onebit_adam_update_cpu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include <algorithm>

#include "onebit/kernels/float_type.h"
#include "onebit/kernels/simd_inl.h"
#include "onebit/kernels/still_lanes_inl.h"
#include "onebit/ops/adam_update.h"
#include "onebit/ops/onebit_adam_update.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

Vector constant(double value) {
  return set(static_cast<float>(value));
}

double total(Vector sums) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(F32(), sums)));
}

void freeze_block(const OnebitFreeze& args, int64_t begin, int64_t end) {
  const Vector factor = constant(args.variance_factor), epsilon = constant(args.epsilon);
  const Vector smallest = set(kSmallestVariance);
  float* momenta = args.momentum.data<float>();
  float* variances = args.variance.data<float>();
  uint8_t* still = args.still.data<uint8_t>();
  for_lanes(end - begin, [&](int64_t i, auto step) {
    const Vector before = load(variances + begin + i, step);
    const auto moves = hn::Gt(before, zero());
    const Vector variance = hn::Max(hn::Mul(factor, before), smallest);
    const Vector divisor = hn::Add(hn::Sqrt(variance), epsilon);
    const Vector momentum = hn::Div(load(momenta + begin + i, step), divisor);
    store(hn::IfThenElseZero(moves, momentum), momenta + begin + i, step);
    store(hn::IfThenElseZero(moves, variance), variances + begin + i, step);
  });
  for (int64_t i = begin; i < end; i += 8) {
    unsigned bits = 0;
    for (int64_t bit = 0; bit < 8; ++bit) {
      bits |= static_cast<unsigned>(variances[i + bit] == 0) << bit;
    }
    still[i / 8] = static_cast<uint8_t>(bits);
  }
}

// Calls body(begin, end, decay) for each part of a block that has a single decay.
template <class Body>
void for_decays(std::span<const UpdateRange> ranges, int64_t begin, int64_t end, const Body& body) {
  const auto ends_before = [](const UpdateRange& range, int64_t at) { return range.end <= at; };
  auto range = std::lower_bound(ranges.begin(), ranges.end(), begin, ends_before);
  for (int64_t at = begin; at < end; ++range) {
    const int64_t last = std::min(end, range->end);
    body(at, last, range->weight_decay);
    at = last;
  }
}

// The scaled and decayed gradient of a block; it stays in the cache.
struct BlockGradient {
  HWY_ALIGN float values[kBlockElements];
};

// Sums over the entries of a sub-block that move.
struct SubBlockSums {
  double square = 0, variance = 0, signed_sum = 0;
};

template <class Step>
auto lanes_of_bits(uint64_t bits, Step) {
  return hn::LoadMaskBits(F32(), reinterpret_cast<const uint8_t*>(&bits));
}

struct Reading {
  bool finite = true;        // of still entries too
  bool still_moved = false;  // a still entry has a gradient
};

// Fills `to`, with zeros for still entries.
Reading read_gradient(const OnebitNormalize& args, int64_t begin, int64_t end, BlockGradient& to) {
  const Vector scale = constant(args.gradient_scale);
  const float* variances = args.variance.data<float>();
  const Vector largest = constant(std::sqrt(kLargestFinite));
  auto moved = hn::Ne(zero(), zero()), finite = hn::Eq(zero(), zero());
  const auto span = [&](int64_t first, int64_t last, double decay) {
    const Vector decays = constant(decay);
    const float* values = decay == 0 ? nullptr : args.value.data<float>() + first;
    const float* gradients = args.gradient.data<float>() + first;
    for_lanes(last - first, [&](int64_t i, auto step) {
      const auto moves = hn::Gt(load(variances + first + i, step), zero());
      const Vector read = load(gradients + i, step);
      moved = hn::Or(moved, hn::AndNot(moves, hn::Ne(read, zero())));
      Vector gradient = hn::Mul(scale, read);
      if (values != nullptr) gradient = hn::MulAdd(decays, load(values + i, step), gradient);
      finite = hn::And(finite, hn::Le(hn::Abs(gradient), largest));
      store(hn::IfThenElseZero(moves, gradient), to.values + (first - begin) + i, step);
    });
  };
  if (args.ranges.empty()) {
    span(begin, end, 0);
  } else {
    for_decays(args.ranges, begin, end, span);
  }
  return {hn::AllTrue(F32(), finite), !hn::AllFalse(F32(), moved)};
}

template <bool kSketch>
SubBlockSums sum_sub_block(const float* gradients, const float* variances, int64_t count,
                           uint64_t key, uint64_t first_group) {
  Vector square = zero(), variance = zero(), signed_sum = zero();
  uint32_t signs = 0;
  for_lanes(count, [&](int64_t i, auto step) {
    const Vector gradient = load(gradients + i, step);
    square = hn::MulAdd(gradient, gradient, square);
    variance = hn::Add(variance, load(variances + i, step));
    if constexpr (kSketch) {
      if (i % 32 == 0) signs = noise_signs(key, first_group + static_cast<uint64_t>(i / 32));
      const auto minus = lanes_of_bits(signs >> (i % 32), step);
      signed_sum = hn::Add(signed_sum, hn::IfThenElse(minus, hn::Neg(gradient), gradient));
    }
  });
  return {total(square), total(variance), total(signed_sum)};
}

// normalized = g / (sqrt(v) + epsilon) with v = kept variance + own g^2; the variance becomes
// v shrink.
void normalize_span(const float* gradients, float* variances, float* normalized, int64_t count,
                    double kept, double own, double shrink, double epsilon) {
  const Vector keeps = constant(kept), owns = constant(own), shrinks = constant(shrink);
  const Vector smallest = set(kSmallestVariance), epsilons = constant(epsilon);
  for_lanes(count, [&](int64_t i, auto step) {
    const Vector gradient = load(gradients + i, step), before = load(variances + i, step);
    const auto moves = hn::Gt(before, zero());
    const Vector grown = hn::MulAdd(owns, hn::Mul(gradient, gradient), hn::Mul(keeps, before));
    const Vector divisor = hn::Add(hn::Sqrt(hn::Max(grown, smallest)), epsilons);
    const Vector variance = hn::Max(hn::Mul(grown, shrinks), smallest);
    store(hn::IfThenElseZero(moves, hn::Div(gradient, divisor)), normalized + i, step);
    store(hn::IfThenElseZero(moves, variance), variances + i, step);
  });
}

// The sums that onebit_normalize computes over a block before it changes anything.
struct BlockSums {
  SubBlockSums sub_block[kSubBlocks];
  double square = 0, variance = 0, signed_sum = 0;
  bool finite = true;
};

// The factor with which sub-block `index` of the buffer adds g^2 to its variance.
double own_rate(const OnebitNormalize& args, int64_t index) {
  if (args.alone) return 1 - args.beta2;
  return (1 - args.beta2) * static_cast<double>(args.own_weight.data<float>()[index]) /
         static_cast<double>(args.block_ratio.data<float>()[index / kSubBlocks]);
}

BlockSums sum_block(const OnebitNormalize& args, int64_t begin, int64_t end,
                    const BlockGradient& gradient) {
  BlockSums sums;
  for (int64_t at = begin; at < end; at += kSubBlockElements) {
    const int64_t count = std::min(kSubBlockElements, end - at);
    const float* gradients = gradient.values + (at - begin);
    const float* variances = args.variance.data<float>() + at;
    const auto group = static_cast<uint64_t>((at + args.sketch_shift) / 32);
    SubBlockSums& one = sums.sub_block[(at - begin) / kSubBlockElements];
    one = args.alone ? sum_sub_block<false>(gradients, variances, count, 0, group)
                     : sum_sub_block<true>(gradients, variances, count, args.sketch_key, group);
    sums.square += one.square;
    sums.variance += one.variance;
    sums.signed_sum += one.signed_sum;
    // Also false for NaN. A larger square would dominate the other variances.
    const double added = own_rate(args, at / kSubBlockElements) * one.square;
    sums.finite = sums.finite && one.square <= kLargestFinite &&
                  (args.alone || added <= kLargestFinite * one.variance);
  }
  return sums;
}

// The extra is kept finite: running means follow it and would never recover from an infinity.
float bounded(double value) {
  return static_cast<float>(std::clamp(value, -kLargestFinite, kLargestFinite));
}

void add_to_sent_sums(const OnebitNormalize& args, int64_t begin, int64_t end,
                      const BlockSums& sums) {
  const int64_t block = begin / kBlockElements;
  float* energies = args.energy.data<float>() + block * kSubBlocks;
  float& sketch = args.sketch.data<float>()[block];
  if (sums.finite) {
    const auto ratio = static_cast<double>(args.block_ratio.data<float>()[block]);
    for (int64_t at = begin, j = 0; at < end; at += kSubBlockElements, ++j) {
      const SubBlockSums& one = sums.sub_block[j];
      if (one.variance > 0) energies[j] += bounded(one.square / (ratio * one.variance));
    }
    if (sums.variance > 0) {
      sketch += bounded(sums.signed_sum / std::sqrt(sums.variance));
      args.block_energy.data<float>()[block] += bounded(sums.square / sums.variance);
    }
  }
  args.block_variance.data<float>()[block] = static_cast<float>(sums.variance);
  if (args.turn == kNoTurn) return;
  const bool takes_sketch = args.turn == kSubBlocks;
  float& source = takes_sketch ? sketch : energies[args.turn];
  const double factor = takes_sketch ? 1 : args.turn_factor;
  args.extra.data<float>()[block - args.begin / kBlockElements] =
      bounded(factor * static_cast<double>(source));
  source = 0;
}

void normalize_block(const OnebitNormalize& args, int64_t begin, int64_t end) {
  BlockGradient gradient;
  const Reading reading = read_gradient(args, begin, end, gradient);
  BlockSums sums = sum_block(args, begin, end, gradient);
  sums.finite = sums.finite && reading.finite;
  float* normalized = args.normalized.data<float>() + (begin - args.begin);
  if (!sums.finite) std::fill(normalized, normalized + (end - begin), 0.0f);
  for (int64_t at = begin; sums.finite && at < end; at += kSubBlockElements) {
    const SubBlockSums& one = sums.sub_block[(at - begin) / kSubBlockElements];
    const double own = own_rate(args, at / kSubBlockElements);
    const double grown = one.variance + own * one.square;
    const double shrink = args.alone || grown == 0 ? 1 : one.variance / grown;
    normalize_span(gradient.values + (at - begin), args.variance.data<float>() + at,
                   normalized + (at - begin), std::min(kSubBlockElements, end - at),
                   args.alone ? args.beta2 : 1, own, shrink, args.epsilon);
  }
  if (!args.alone) add_to_sent_sums(args, begin, end, sums);
  const int64_t block = begin / kBlockElements;
  args.block_square.data<double>()[block] = sums.finite ? sums.square : 0;
  args.block_flags.data<uint8_t>()[block] = !sums.finite          ? kBlockNotFinite
                                            : reading.still_moved ? kBlockStillMoved
                                                                  : 0;
}

void momentum_block(const OnebitMomentum& args, int64_t begin, int64_t end) {
  const Vector beta = constant(args.beta1), rest = constant(1 - args.beta1);
  const Vector least = constant(kSmallestMomentum);
  if (!args.normalized.empty()) {
    float* momenta = args.momentum.data<float>() + begin;
    const float* normalized = args.normalized.data<float>() + (begin - args.begin);
    for_lanes(end - begin, [&](int64_t i, auto step) {
      const Vector momentum =
          hn::MulAdd(beta, load(momenta + i, step), hn::Mul(rest, load(normalized + i, step)));
      store(hn::IfThenElseZero(hn::Ge(hn::Abs(momentum), least), momentum), momenta + i, step);
    });
  }
  const int64_t first = begin + args.turn * kSubBlockElements;
  const int64_t last = std::min(first + kSubBlockElements, end);
  if (args.extra.empty() || args.turn == kSubBlocks || first >= last) return;
  const double energy =
      static_cast<double>(args.extra.data<float>()[(begin - args.begin) / kBlockElements]);
  const Vector growth = constant(args.turn_memory + (1 - args.turn_memory) * energy);
  const Vector smallest = set(kSmallestVariance), largest = constant(kLargestFinite);
  float* variances = args.variance.data<float>() + first;
  for_lanes(last - first, [&](int64_t i, auto step) {
    const Vector before = load(variances + i, step);
    const Vector after = hn::Min(hn::Max(hn::Mul(before, growth), smallest), largest);
    store(hn::IfThenElseZero(hn::Gt(before, zero()), after), variances + i, step);
  });
}

template <bool kStill, class Compute>  // kStill is false: no entry of the span is still
void step_span(const OnebitStep& args, int64_t begin, int64_t end, double decay, Compute* compute) {
  const Vector factor = constant(args.momentum_factor), rate = constant(args.learning_rate);
  const Vector decays = constant(decay);
  const float* momenta = args.momentum.data<float>() + begin;
  const uint8_t* still = args.still.data<uint8_t>();
  float* values = args.value.data<float>() + begin;
  for_lanes(end - begin, [&](int64_t i, auto step) {
    const Vector value = load(values + i, step);
    const Vector update = hn::Mul(factor, load(momenta + i, step));
    Vector result = hn::NegMulAdd(rate, hn::MulAdd(decays, value, update), value);
    if constexpr (kStill) {
      result = hn::IfThenElse(still_lanes(still, begin + i, step), value, result);
    }
    store(result, values + i, step);
    if (compute != nullptr) store(result, compute + begin + i, step);
  });
}

void step_block(const OnebitStep& args, int64_t begin, int64_t end) {
  const uint8_t* still = args.still.data<uint8_t>();
  const bool any_still =
      std::any_of(still + begin / 8, still + (end + 7) / 8, [](uint8_t bits) { return bits != 0; });
  const auto update = [&](auto* compute) {
    for_decays(args.ranges, begin, end, [&](int64_t first, int64_t last, double decay) {
      if (any_still) {
        step_span<true>(args, first, last, decay, compute);
      } else {
        step_span<false>(args, first, last, decay, compute);
      }
    });
  };
  if (args.compute_value.empty()) return update(static_cast<float*>(nullptr));
  with_float_type(args.compute_value.dtype(),
                  [&](auto tag) { update(args.compute_value.template data<decltype(tag)>()); });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

HWY_EXPORT(freeze_block);
HWY_EXPORT(normalize_block);
HWY_EXPORT(momentum_block);
HWY_EXPORT(step_block);

namespace cpu {
namespace {

// Calls block(begin, end) for every block of [begin, end).
template <class Block>
void for_blocks(Context& context, int64_t begin, int64_t end, const Block& block) {
  const int64_t blocks = kernels::blocks_in(end - begin);
  context.parallel_for(blocks, 8, [&](int64_t first, int64_t last) {
    for (int64_t index = first; index < last; ++index) {
      const int64_t at = begin + index * kernels::kBlockElements;
      block(at, std::min(at + kernels::kBlockElements, end));
    }
  });
}

}  // namespace

void onebit_freeze(Context& context, const OnebitFreeze& args) {
  for_blocks(context, 0, args.momentum.elements(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(freeze_block)(args, begin, end);
  });
}

void onebit_normalize(Context& context, const OnebitNormalize& args) {
  for_blocks(context, args.begin, args.end, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(normalize_block)(args, begin, end);
  });
}

void onebit_momentum(Context& context, const OnebitMomentum& args) {
  for_blocks(context, args.begin, args.end, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(momentum_block)(args, begin, end);
  });
}

void onebit_step(Context& context, const OnebitStep& args) {
  for_blocks(context, 0, args.value.elements(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(step_block)(args, begin, end);
  });
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
