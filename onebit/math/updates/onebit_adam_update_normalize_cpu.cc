// The pass over a block before it is sent: onebit_normalize. The other passes of 1-bit Adam are in
// onebit_adam_update_cpu.cc.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/updates/onebit_adam_update_normalize_cpu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include <algorithm>
#include <cmath>

#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/updates/onebit_adam_update.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::updates::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

Vector constant(double value) {
  return set(static_cast<float>(value));
}

double total(Vector sums) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(F32(), sums)));
}

// The scaled and decayed gradient of a block, which stays in the cache.
struct BlockGradient {
  HWY_ALIGN float values[kBlockElements];
};

// Sums over the entries of a sub-block that move.
struct SubBlockSums {
  double square = 0, variance = 0, signed_sum = 0;
  bool spikes = false;
};

// A sub-block with spikes: what of their squares counts, from 0 to 1.
struct Spikes {
  double least = 0;  // a larger g^2 / variance is one
  double counted = 1;
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
  const auto span = [&](int64_t first, int64_t last, const UpdateRange& range) {
    const Vector decays = constant(range.weight_decay);
    const float* values = range.weight_decay == 0 ? nullptr : args.value.data<float>() + first;
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
    span(begin, end, {});
  } else {
    for_ranges(args.ranges, begin, end, span);
  }
  return {hn::AllTrue(F32(), finite), !hn::AllFalse(F32(), moved)};
}

auto is_spike(Vector gradient, Vector variance, Vector least) {
  return hn::Gt(hn::Mul(gradient, gradient), hn::Mul(least, variance));
}

// The signs of the sketch, for a pass over a sub-block in the order of its entries.
class SketchSigns {
 public:
  SketchSigns(uint64_t key, uint64_t first_group) : key_(key), first_group_(first_group) {}

  // Returns the lanes of `gradient`, entry i of the sub-block and those after it, with their signs.
  template <class Step>
  Vector apply(Vector gradient, int64_t i, Step step) {
    if (i % 32 == 0) bits_ = noise_signs(key_, first_group_ + static_cast<uint64_t>(i / 32));
    const auto minus = lanes_of_bits(bits_ >> (i % 32), step);
    return hn::IfThenElse(minus, hn::Neg(gradient), gradient);
  }

 private:
  uint64_t key_, first_group_;
  uint32_t bits_ = 0;
};

// Several ranks also need the sketch, and whether an entry has a spike.
template <bool kSeveral>
SubBlockSums sum_sub_block(const float* gradients, const float* variances, int64_t count,
                           double least_spike, SketchSigns signs) {
  Vector square = zero(), variance = zero(), signed_sum = zero();
  const Vector least = constant(least_spike);
  auto spikes = hn::Ne(zero(), zero());
  for_lanes(count, [&](int64_t i, auto step) {
    const Vector gradient = load(gradients + i, step), before = load(variances + i, step);
    square = hn::MulAdd(gradient, gradient, square);
    variance = hn::Add(variance, before);
    if constexpr (kSeveral) {
      spikes = hn::Or(spikes, is_spike(gradient, before, least));
      signed_sum = hn::Add(signed_sum, signs.apply(gradient, i, step));
    }
  });
  return {total(square), total(variance), total(signed_sum), !hn::AllFalse(F32(), spikes)};
}

// Sums over the entries of a sub-block, those with a spike apart: as differences they would be lost
// in the rounding of a large spike.
struct SpikeSums {
  double square = 0, signed_sum = 0, other_square = 0, other_signed_sum = 0;
  int64_t spikes = 0, moving = 0;
};

SpikeSums sum_apart(const float* gradients, const float* variances, int64_t count,
                    double least_spike, SketchSigns signs) {
  SpikeSums sums;
  Vector square = zero(), signed_sum = zero(), other_square = zero(), other_signed_sum = zero();
  const Vector least = constant(least_spike);
  for_lanes(count, [&](int64_t i, auto step) {
    const Vector gradient = load(gradients + i, step), before = load(variances + i, step);
    const auto spike = is_spike(gradient, before, least);
    const Vector with_sign = signs.apply(gradient, i, step);
    const Vector others = hn::IfThenZeroElse(spike, gradient);
    const Vector spiking = hn::IfThenElseZero(spike, gradient);
    square = hn::MulAdd(spiking, spiking, square);
    other_square = hn::MulAdd(others, others, other_square);
    signed_sum = hn::Add(signed_sum, hn::IfThenElseZero(spike, with_sign));
    other_signed_sum = hn::Add(other_signed_sum, hn::IfThenZeroElse(spike, with_sign));
    sums.spikes += static_cast<int64_t>(hn::CountTrue(F32(), spike));
    sums.moving += static_cast<int64_t>(hn::CountTrue(F32(), hn::Gt(before, zero())));
  });
  sums.square = total(square);
  sums.signed_sum = total(signed_sum);
  sums.other_square = total(other_square);
  sums.other_signed_sum = total(other_signed_sum);
  return sums;
}

// What a pass over a sub-block computes with, v being the variance:
//   normalized = g / (sqrt(kept grown v + own g^2) + epsilon),
//   variance = (kept v + own g^2) shrink, with the squares of spikes as far as they count
struct Normalizing {
  double kept = 1, grown = 1, own = 0, shrink = 1, epsilon = 0;
  Spikes spikes;
};

template <bool kUsual>  // no spike is cut, and `grown` is 1
void normalize_span(const float* gradients, float* variances, float* normalized, int64_t count,
                    const Normalizing& by) {
  const Vector keeps = constant(by.kept), owns = constant(by.own), shrinks = constant(by.shrink);
  const Vector smallest = set(kSmallestVariance), epsilons = constant(by.epsilon);
  const Vector grown = constant(by.kept * by.grown), least = constant(by.spikes.least);
  const Vector counted = constant(by.own * by.spikes.counted);
  for_lanes(count, [&](int64_t i, auto step) {
    const Vector gradient = load(gradients + i, step), before = load(variances + i, step);
    const auto moves = hn::Gt(before, zero());
    const Vector square = hn::Mul(gradient, gradient);
    Vector next = hn::MulAdd(owns, square, hn::Mul(keeps, before));
    Vector current = next;
    if constexpr (!kUsual) {
      current = hn::MulAdd(owns, square, hn::Mul(grown, before));
      const auto spike = is_spike(gradient, before, least);
      next = hn::IfThenElse(spike, hn::MulAdd(counted, square, hn::Mul(keeps, before)), next);
    }
    const Vector divisor = hn::Add(hn::Sqrt(hn::Max(current, smallest)), epsilons);
    const Vector variance = hn::Max(hn::Mul(next, shrinks), smallest);
    store(hn::IfThenElseZero(moves, hn::Div(gradient, divisor)), normalized + i, step);
    store(hn::IfThenElseZero(moves, variance), variances + i, step);
  });
}

// The sums that onebit_normalize computes over a block before it changes anything. In the sums of
// sub-blocks and in the signed sum, the squares of spikes count as far as `spikes` says.
struct BlockSums {
  SubBlockSums sub_block[kSubBlocks];
  Spikes spikes[kSubBlocks];
  double square = 0, counted_square = 0, variance = 0, signed_sum = 0;
  bool finite = true;
};

double ratio_of(const OnebitNormalize& args, int64_t block) {
  return args.alone ? 1 : static_cast<double>(args.block_ratio.data<float>()[block]);
}

// The factor with which sub-block `index` of the buffer adds g^2 to its variance.
double own_rate(const OnebitNormalize& args, int64_t index) {
  if (args.alone) return 1 - args.beta2;
  return (1 - args.beta2) * static_cast<double>(args.own_weight.data<float>()[index]) /
         ratio_of(args, index / kSubBlocks);
}

// A larger g^2 / variance in a block with this ratio is a spike.
double least_spike_of(const OnebitNormalize& args, double ratio) {
  return ratio * std::max(kLeastSpike, 1 / (1 - args.beta2));
}

SketchSigns signs_of(const OnebitNormalize& args, int64_t at) {
  return {args.sketch_key, static_cast<uint64_t>((at + args.sketch_shift) / 32)};
}

// Cuts the squares of a sub-block's spikes to what may count.
Spikes cut_spikes(const OnebitNormalize& args, int64_t at, int64_t count, const float* gradients,
                  double ratio, SubBlockSums& sums) {
  const double least_spike = least_spike_of(args, ratio);
  const SpikeSums apart = sum_apart(gradients, args.variance.data<float>() + at, count, least_spike,
                                    signs_of(args, at));
  if (2 * apart.spikes > apart.moving) return {least_spike, 1};
  const double counted =
      std::min(1.0, kSpikeShare * ratio * sums.variance / ((1 - args.beta2) * apart.square));
  sums.square = apart.other_square + counted * apart.square;
  sums.signed_sum = apart.other_signed_sum + std::sqrt(counted) * apart.signed_sum;
  return {least_spike, counted};
}

BlockSums sum_block(const OnebitNormalize& args, int64_t begin, int64_t end,
                    const BlockGradient& gradient) {
  BlockSums sums;
  const double ratio = ratio_of(args, begin / kBlockElements);
  const double least_spike = least_spike_of(args, ratio);
  for (int64_t at = begin; at < end; at += kSubBlockElements) {
    const int64_t count = std::min(kSubBlockElements, end - at);
    const float* gradients = gradient.values + (at - begin);
    const float* variances = args.variance.data<float>() + at;
    const int64_t index = (at - begin) / kSubBlockElements;
    SubBlockSums& one = sums.sub_block[index];
    const auto sum = args.alone ? sum_sub_block<false> : sum_sub_block<true>;
    one = sum(gradients, variances, count, least_spike, signs_of(args, at));
    sums.square += one.square;
    // Also false for NaN. A larger square would dominate the other variances.
    const double added = own_rate(args, at / kSubBlockElements) * one.square;
    sums.finite = sums.finite && one.square <= kLargestFinite &&
                  (args.alone || added <= kLargestFinite * one.variance);
    if (one.spikes && sums.finite) {
      sums.spikes[index] = cut_spikes(args, at, count, gradients, ratio, one);
    }
    sums.counted_square += one.square;
    sums.variance += one.variance;
    sums.signed_sum += one.signed_sum;
  }
  return sums;
}

// The extra is kept finite: running means follow it and would never recover from an infinity.
float bounded(double value) {
  return static_cast<float>(std::clamp(value, -kLargestFinite, kLargestFinite));
}

double updates_in_energy(const OnebitNormalize& args, int64_t sub_block) {
  return static_cast<double>(args.energy_updates[sub_block]);
}

// The factor by which the energy of this rank alone, with this update's, would change the variance
// of sub-block `index` of the buffer (onebit_momentum).
double growth_of(const OnebitNormalize& args, int64_t index, double energy) {
  const double updates = updates_in_energy(args, index % kSubBlocks);
  if (energy <= 2 * updates) return 1;  // it is less than 2, which is all that matters
  const double memory = std::pow(args.beta2, updates);
  return memory + (1 - memory) * energy / updates;
}

void add_to_sent_sums(const OnebitNormalize& args, int64_t begin, int64_t end,
                      const BlockSums& sums) {
  const int64_t block = begin / kBlockElements;
  float* energies = args.energy.data<float>() + block * kSubBlocks;
  float& sketch = args.sketch.data<float>()[block];
  if (sums.finite) {
    const double ratio = ratio_of(args, block);
    for (int64_t at = begin, j = 0; at < end; at += kSubBlockElements, ++j) {
      const SubBlockSums& one = sums.sub_block[j];
      if (one.variance > 0) energies[j] += bounded(one.square / (ratio * one.variance));
    }
    if (sums.variance > 0) {
      sketch += bounded(sums.signed_sum / std::sqrt(sums.variance));
      args.block_energy.data<float>()[block] += bounded(sums.counted_square / sums.variance);
    }
  }
  args.block_variance.data<float>()[block] = static_cast<float>(sums.variance);
  if (args.turn == kNoTurn) return;
  const bool takes_sketch = args.turn == kSubBlocks;
  float& source = takes_sketch ? sketch : energies[args.turn];
  const double factor = takes_sketch ? 1 : 1 / updates_in_energy(args, args.turn);
  args.extra.data<float>()[block - args.begin / kBlockElements] =
      bounded(factor * static_cast<double>(source));
  source = 0;
}

Normalizing normalizing_of(const OnebitNormalize& args, int64_t at, const BlockSums& sums) {
  const int64_t index = at / kSubBlockElements;
  const SubBlockSums& one = sums.sub_block[index % kSubBlocks];
  Normalizing by{.own = own_rate(args, index), .epsilon = args.epsilon, .spikes = {}};
  if (args.alone) {
    by.kept = args.beta2;
    return by;
  }
  const double grown = one.variance + by.own * one.square;
  if (grown == 0) return by;
  by.shrink = one.variance / grown;
  by.spikes = sums.spikes[index % kSubBlocks];
  const double ratio = ratio_of(args, index / kSubBlocks);
  const double energy =
      static_cast<double>(args.energy.data<float>()[index]) + one.square / (ratio * one.variance);
  by.grown = std::clamp(growth_of(args, index, energy) - 1, 1.0, kLargestFinite);
  return by;
}

void normalize_block(const OnebitNormalize& args, int64_t begin, int64_t end) {
  BlockGradient gradient;
  const Reading reading = read_gradient(args, begin, end, gradient);
  BlockSums sums = sum_block(args, begin, end, gradient);
  sums.finite = sums.finite && reading.finite;
  float* normalized = args.normalized.data<float>() + (begin - args.begin);
  if (!sums.finite) std::fill(normalized, normalized + (end - begin), 0.0f);
  for (int64_t at = begin; sums.finite && at < end; at += kSubBlockElements) {
    const Normalizing by = normalizing_of(args, at, sums);
    const bool usual = by.grown == 1 && by.spikes.counted == 1;
    const auto span = usual ? normalize_span<true> : normalize_span<false>;
    span(gradient.values + (at - begin), args.variance.data<float>() + at,
         normalized + (at - begin), std::min(kSubBlockElements, end - at), by);
  }
  if (!args.alone) add_to_sent_sums(args, begin, end, sums);
  const int64_t block = begin / kBlockElements;
  args.block_square.data<double>()[block] = sums.finite ? sums.square : 0;
  args.block_flags.data<uint8_t>()[block] = !sums.finite          ? kBlockNotFinite
                                            : reading.still_moved ? kBlockStillMoved
                                                                  : 0;
}

}  // namespace
}  // namespace onebit::updates::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::updates {

HWY_EXPORT(normalize_block);

namespace cpu {

void onebit_normalize(Context& context, const OnebitNormalize& args) {
  const int64_t blocks = kernels::blocks_in(args.end - args.begin);
  context.parallel_for(blocks, 8, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = args.begin + block * kernels::kBlockElements;
      const int64_t end = std::min(begin + kernels::kBlockElements, args.end);
      HWY_DYNAMIC_DISPATCH(normalize_block)(args, begin, end);
    }
  });
}

}  // namespace cpu
}  // namespace onebit::updates
#endif
