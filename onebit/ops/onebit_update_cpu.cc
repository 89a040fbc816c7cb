#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/ops/onebit_update_cpu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include <algorithm>
#include <cstring>

#include "onebit/ops/cpu_ops.h"
#include "onebit/ops/onebit_update.h"
#include "onebit/ops/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {
namespace {

Vector constant(double value) {
  return set(static_cast<float>(value));
}

double total(Vector sums) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(F32(), sums)));
}

// The mean of squares over `live` entries, finite, and 0 when there are none.
float mean_energy(double sum, int64_t live) {
  if (live == 0) return 0;
  return static_cast<float>(std::min(sum / static_cast<double>(live), 1e30));
}

void freeze_block(const OnebitFreeze& args, int64_t begin, int64_t end) {
  const Vector one = set(1), factor = constant(args.variance_factor);
  const Vector epsilon = constant(args.epsilon);
  float* momenta = args.momentum.data<float>();
  float* variances = args.variance.data<float>();
  uint8_t* still = args.still.data<uint8_t>();
  for_lanes(end - begin, [&](int64_t i, auto step) {
    const Vector variance = load(variances + begin + i, step);
    const auto moves = hn::Gt(variance, zero());
    const Vector denominator = hn::Add(hn::Sqrt(hn::Mul(factor, variance)), epsilon);
    const Vector inverse = hn::IfThenElseZero(moves, hn::Div(one, denominator));
    const Vector momentum = load(momenta + begin + i, step);
    const Vector x = args.preconditioned ? hn::Mul(momentum, inverse) : momentum;
    store(hn::IfThenElseZero(moves, x), momenta + begin + i, step);
    store(inverse, variances + begin + i, step);
  });
  for (int64_t i = begin; i < end; i += 8) {
    unsigned bits = 0;
    for (int64_t bit = 0; bit < 8; ++bit) {
      bits |= static_cast<unsigned>(variances[i + bit] == 0) << bit;
    }
    still[i / 8] = static_cast<uint8_t>(bits);
  }
}

void energy_block(const OnebitEnergy& args, int64_t begin, int64_t end) {
  const Vector factor = constant(args.variance_factor), epsilon = constant(args.epsilon);
  const float* gradients = args.gradient.data<float>() + begin;
  const float* variances = args.variance.data<float>() + begin;
  Vector sums = zero();
  int64_t live = 0;
  for_lanes(end - begin, [&](int64_t i, auto step) {
    const Vector variance = load(variances + i, step);
    const auto moves = hn::Gt(variance, zero());
    const Vector denominator = hn::Add(hn::Sqrt(hn::Mul(factor, variance)), epsilon);
    const Vector ratio = hn::IfThenElseZero(moves, hn::Div(load(gradients + i, step), denominator));
    sums = hn::MulAdd(ratio, ratio, sums);
    live += static_cast<int64_t>(hn::CountTrue(F32(), moves));
  });
  args.block_energy.data<float>()[begin / kUpdateBlockElements] = mean_energy(total(sums), live);
}

// What a sweep over the elements of a block adds up.
struct MomentumSums {
  double energy = 0, square = 0;
  int64_t live = 0;
  bool finite = true, still_moved = false;
};

// A block as it was, should its gradient turn out not to be finite; it stays in the cache.
struct BlockBefore {
  HWY_ALIGN float momentum[kUpdateBlockElements];
  HWY_ALIGN float inverse[kUpdateBlockElements];
};

// Elements [begin, end) that share one gradient decay; `before` from `offset` on.
// The gradient is not zero; d goes on; the energy is wanted.
template <bool kGradient, bool kMoving, bool kEnergy>
void momentum_span(const OnebitMomentum& args, int64_t begin, int64_t end, double decay,
                   const BlockBefore& before, int64_t offset, MomentumSums& sums) {
  const Vector scale = constant(args.gradient_scale), decays = constant(decay);
  const Vector beta = constant(args.beta1), rest = constant(1 - args.beta1);
  const Vector largest = constant(kLargestFinite);
  const float* gradients = args.gradient.data<float>() + begin;
  float* inverses = args.inverse.data<float>() + begin;
  const float* old_momenta = before.momentum + offset;
  const float* old_inverses = before.inverse + offset;
  const Vector beta2 = constant(args.beta2), largest_inverse = constant(1 / args.epsilon);
  const Vector rest2 = kMoving
                           ? constant((1 - args.beta2) /
                                      args.block_ratio.data<float>()[begin / kUpdateBlockElements])
                           : zero();
  const float* values = decay == 0 ? nullptr : args.value.data<float>() + begin;
  float* momenta = args.momentum.data<float>() + begin;
  Vector energy = zero(), square = zero();
  auto finite = hn::Eq(zero(), zero()), moved = hn::Ne(zero(), zero());
  for_lanes(end - begin, [&](int64_t i, auto step) {
    Vector inverse = load(old_inverses + i, step);
    const auto moves = hn::Gt(inverse, zero());
    Vector gradient = zero();
    if constexpr (kGradient) {
      const Vector read = load(gradients + i, step);
      gradient = hn::Mul(scale, read);
      moved = hn::Or(moved, hn::AndNot(moves, hn::Ne(read, zero())));
      if (values != nullptr) gradient = hn::MulAdd(decays, load(values + i, step), gradient);
      square = hn::MulAdd(gradient, gradient, square);
    }
    Vector ratio = hn::Mul(gradient, inverse);
    if constexpr (kMoving && kGradient) {
      const Vector growth = hn::Sqrt(hn::MulAdd(rest2, hn::Mul(ratio, ratio), beta2));
      finite = hn::And(finite, hn::Le(growth, largest));
      inverse = hn::Min(hn::Div(inverse, growth), largest_inverse);
      ratio = hn::Mul(gradient, inverse);
    }
    if constexpr (kMoving) store(inverse, inverses + i, step);
    if constexpr (kEnergy) {
      energy = hn::MulAdd(ratio, ratio, energy);
      sums.live += static_cast<int64_t>(hn::CountTrue(F32(), moves));
    }
    const Vector change = args.preconditioned ? ratio : gradient;
    const Vector x = hn::MulAdd(beta, load(old_momenta + i, step), hn::Mul(rest, change));
    finite =
        hn::And(finite, hn::And(hn::Le(hn::Abs(x), largest), hn::Le(hn::Abs(gradient), largest)));
    store(hn::IfThenElseZero(moves, x), momenta + i, step);
  });
  if constexpr (kEnergy) sums.energy += total(energy);
  sums.square += total(square);
  sums.finite = sums.finite && hn::AllTrue(F32(), finite);
  sums.still_moved = sums.still_moved || !hn::AllFalse(F32(), moved);
}

// Calls body(begin, end, decay) for the parts of a block with one decay each.
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

template <bool kGradient, bool kMoving, bool kEnergy>
MomentumSums momentum_sweep(const OnebitMomentum& args, int64_t begin, int64_t end,
                            const BlockBefore& before) {
  MomentumSums sums;
  const auto span = [&](int64_t first, int64_t last, double decay) {
    momentum_span<kGradient, kMoving, kEnergy>(args, first, last, decay, before, first - begin,
                                               sums);
  };
  if (args.ranges.empty()) {
    span(begin, end, 0);
  } else {
    for_decays(args.ranges, begin, end, span);
  }
  return sums;
}

template <bool kMoving, bool kEnergy>
void momentum_block_as(const OnebitMomentum& args, int64_t begin, int64_t end) {
  BlockBefore before;
  const size_t size_bytes = static_cast<size_t>(end - begin) * sizeof(float);
  std::memcpy(before.momentum, args.momentum.data<float>() + begin, size_bytes);
  std::memcpy(before.inverse, args.inverse.data<float>() + begin, size_bytes);
  MomentumSums sums = momentum_sweep<true, kMoving, kEnergy>(args, begin, end, before);
  uint8_t flags = 0;
  if (sums.still_moved) flags = kBlockStillMoved;
  if (!sums.finite) {
    sums = momentum_sweep<false, kMoving, kEnergy>(args, begin, end, before);
    flags = kBlockNotFinite;
  }
  const int64_t block = begin / kUpdateBlockElements;
  if constexpr (kEnergy) {
    args.block_energy.data<float>()[block] = mean_energy(sums.energy, sums.live);
  }
  args.block_square.data<double>()[block] = sums.square;
  args.block_flags.data<uint8_t>()[block] = flags;
}

void momentum_block(const OnebitMomentum& args, int64_t begin, int64_t end) {
  const bool energy = !args.block_energy.empty();
  if (args.block_ratio.empty()) {
    return energy ? momentum_block_as<false, true>(args, begin, end)
                  : momentum_block_as<false, false>(args, begin, end);
  }
  return energy ? momentum_block_as<true, true>(args, begin, end)
                : momentum_block_as<true, false>(args, begin, end);
}

int64_t lanes_of(All) {
  return lane_count();
}
int64_t lanes_of(First first) {
  return static_cast<int64_t>(first.lanes);
}

// The mask of still entries among the lanes from `element` on.
template <class Step>
auto still_lanes(const uint8_t* still, int64_t element, Step step) {
  uint64_t bits = 0;
  const int64_t bytes = (element % 8 + lanes_of(step) + 7) / 8;
  std::memcpy(&bits, still + element / 8, static_cast<size_t>(bytes));
  bits >>= element % 8;
  return hn::LoadMaskBits(F32(), reinterpret_cast<const uint8_t*>(&bits));
}

template <bool kStill, class Compute>  // false: nothing in the span stays still
void step_span(const OnebitStep& args, int64_t begin, int64_t end, double decay, Compute* compute) {
  const Vector factor = set(args.block_factor.data<float>()[begin / kUpdateBlockElements]);
  const Vector rate = constant(args.learning_rate), decays = constant(decay);
  const float* momenta = args.momentum.data<float>() + begin;
  const float* inverses = args.inverse.empty() ? nullptr : args.inverse.data<float>() + begin;
  const uint8_t* still = args.still.data<uint8_t>();
  float* values = args.value.data<float>() + begin;
  for_lanes(end - begin, [&](int64_t i, auto step) {
    const Vector value = load(values + i, step);
    Vector x = load(momenta + i, step);
    if (inverses != nullptr) x = hn::Mul(x, load(inverses + i, step));
    Vector result = hn::NegMulAdd(rate, hn::MulAdd(decays, value, hn::Mul(factor, x)), value);
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
HWY_EXPORT(energy_block);
HWY_EXPORT(momentum_block);
HWY_EXPORT(step_block);

namespace cpu {
namespace {

// Calls block(begin, end) for every block of [begin, end).
template <class Block>
void for_blocks(Context& context, int64_t begin, int64_t end, const Block& block) {
  const int64_t blocks = (end - begin + kUpdateBlockElements - 1) / kUpdateBlockElements;
  context.parallel_for(blocks, 8, [&](int64_t first, int64_t last) {
    for (int64_t index = first; index < last; ++index) {
      const int64_t at = begin + index * kUpdateBlockElements;
      block(at, std::min(at + kUpdateBlockElements, end));
    }
  });
}

}  // namespace

void onebit_freeze(Context& context, const OnebitFreeze& args) {
  for_blocks(context, 0, args.momentum.elements(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(freeze_block)(args, begin, end);
  });
}

void onebit_energy(Context& context, const OnebitEnergy& args) {
  for_blocks(context, args.begin, args.end, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(energy_block)(args, begin, end);
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
