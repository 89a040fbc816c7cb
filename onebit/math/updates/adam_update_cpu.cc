#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/updates/adam_update_cpu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include <algorithm>

#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/updates/adam_update.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::updates::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

Vector constant(double value) {
  return set(static_cast<float>(value));
}

// Elements [begin, end) of one range.
template <class Compute>
void update_span(const AdamUpdate& args, int64_t begin, int64_t end, const UpdateRange& range,
                 Compute* compute) {
  const Vector scale = constant(args.gradient_scale);
  const Vector beta1 = constant(args.beta1), rest1 = constant(1 - args.beta1);
  const Vector beta2 = constant(args.beta2), rest2 = constant(1 - args.beta2);
  const Vector factor1 = constant(args.momentum_factor), factor2 = constant(args.variance_factor);
  const Vector smallest = set(kSmallestMomentum);
  const Vector epsilon = constant(args.epsilon);
  const Vector rate = constant(args.learning_rate * range.rate);
  const Vector gradient_decay = constant(args.decoupled ? 0 : range.weight_decay);
  const Vector value_decay = constant(args.decoupled ? range.weight_decay : 0);
  const float* gradients = args.gradient.data<float>() + begin;
  float* values = args.value.data<float>() + begin;
  float* momenta = args.momentum.data<float>() + begin;
  float* variances = args.variance.data<float>() + begin;
  for_lanes(end - begin, [&](int64_t i, auto step) {
    const Vector value = load(values + i, step);
    const Vector gradient =
        hn::MulAdd(gradient_decay, value, hn::Mul(scale, load(gradients + i, step)));
    const Vector mean = hn::MulAdd(beta1, load(momenta + i, step), hn::Mul(rest1, gradient));
    const Vector momentum = hn::IfThenZeroElse(hn::Lt(hn::Abs(mean), smallest), mean);
    const Vector variance =
        hn::MulAdd(beta2, load(variances + i, step), hn::Mul(rest2, hn::Mul(gradient, gradient)));
    store(momentum, momenta + i, step);
    store(variance, variances + i, step);
    const Vector denominator = hn::Add(hn::Sqrt(hn::Mul(factor2, variance)), epsilon);
    const Vector quotient = hn::Div(hn::Mul(factor1, momentum), denominator);
    const Vector update = hn::IfThenElseZero(hn::Gt(denominator, zero()), quotient);
    const Vector result = hn::NegMulAdd(rate, hn::MulAdd(value_decay, value, update), value);
    store(result, values + i, step);
    if (compute != nullptr) store(result, compute + begin + i, step);
  });
}

void update_part(const AdamUpdate& args, int64_t begin, int64_t end) {
  const auto update = [&](auto* compute) {
    for (const UpdateRange& range : args.ranges) {
      const int64_t first = std::max(begin, range.begin), last = std::min(end, range.end);
      if (first < last) update_span(args, first, last, range, compute);
    }
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

HWY_EXPORT(update_part);

namespace cpu {

void adam_update(Context& context, const AdamUpdate& args) {
  constexpr int64_t kUnit = 16;  // the alignment of parameters
  context.parallel_for(args.value.elements() / kUnit, 1024, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(update_part)(args, begin * kUnit, end * kUnit);
  });
}

}  // namespace cpu
}  // namespace onebit::updates
#endif
