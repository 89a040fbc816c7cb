// The passes of 1-bit Adam except onebit_normalize (onebit_adam_update_normalize_cpu.cc).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/updates/onebit_adam_update_cpu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include <algorithm>

#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/kernels/still_lanes_inl.h"
#include "onebit/math/updates/adam_update.h"
#include "onebit/math/updates/onebit_adam_update.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::updates::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

Vector constant(double value) {
  return set(static_cast<float>(value));
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

void momentum_block(const OnebitMomentum& args, int64_t begin, int64_t end) {
  const Vector beta = constant(args.beta1), rest = constant(1 - args.beta1);
  const Vector least = constant(kSmallestMomentum), most = constant(args.limit);
  if (!args.normalized.empty()) {
    float* momenta = args.momentum.data<float>() + begin;
    const float* normalized = args.normalized.data<float>() + (begin - args.begin);
    for_lanes(end - begin, [&](int64_t i, auto step) {
      const Vector momentum =
          hn::MulAdd(beta, load(momenta + i, step), hn::Mul(rest, load(normalized + i, step)));
      const Vector clamped = hn::Max(hn::Neg(most), hn::Min(momentum, most));
      store(hn::IfThenElseZero(hn::Ge(hn::Abs(momentum), least), clamped), momenta + i, step);
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
void step_span(const OnebitStep& args, int64_t begin, int64_t end, const UpdateRange& range,
               Compute* compute) {
  const Vector factor = constant(args.momentum_factor);
  const Vector rate = constant(args.learning_rate * range.rate);
  const Vector decays = constant(range.weight_decay);
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
    for_ranges(args.ranges, begin, end, [&](int64_t first, int64_t last, const UpdateRange& range) {
      if (any_still) {
        step_span<true>(args, first, last, range, compute);
      } else {
        step_span<false>(args, first, last, range, compute);
      }
    });
  };
  if (args.compute_value.empty()) return update(static_cast<float*>(nullptr));
  with_float_type(args.compute_value.dtype(),
                  [&](auto tag) { update(args.compute_value.template data<decltype(tag)>()); });
}

}  // namespace
}  // namespace onebit::updates::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::updates {

HWY_EXPORT(freeze_block);
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
}  // namespace onebit::updates
#endif
