#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/updates/lamb_update_cpu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include <algorithm>

#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/product_sum_inl.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/updates/lamb_update.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::updates::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

struct Squares {
  double value = 0, direction = 0;
};

// LambFactors as vectors.
struct Factors {
  HWY_INLINE explicit Factors(const LambFactors& f)
      : scale(set(f.scale)),
        beta1(set(f.beta1)),
        rest1(set(f.rest1)),
        beta2(set(f.beta2)),
        rest2(set(f.rest2)),
        factor1(set(f.factor1)),
        factor2(set(f.factor2)),
        epsilon_inside(set(f.epsilon_inside)),
        epsilon_outside(set(f.epsilon_outside)) {}

  HWY_INLINE Vector direction(Vector value, Vector momentum, Vector variance, Vector decay) const {
    const Vector root = hn::Sqrt(hn::MulAdd(factor2, variance, epsilon_inside));
    const Vector denominator = hn::Add(root, epsilon_outside);
    const Vector quotient = hn::Div(hn::Mul(factor1, momentum), denominator);
    return hn::MulAdd(decay, value, hn::IfThenElseZero(hn::Gt(denominator, zero()), quotient));
  }

  Vector scale, beta1, rest1, beta2, rest2, factor1, factor2, epsilon_inside, epsilon_outside;
};

// The first pass over elements [begin, end) of one tensor.
Squares update_moments(const LambUpdate& args, const Factors& f, int64_t begin, int64_t end,
                       double weight_decay) {
  const Vector decay = set(static_cast<float>(weight_decay)), smallest = set(kSmallestMomentum);
  const float* gradients = args.gradient.data<float>() + begin;
  const float* values = args.value.data<float>() + begin;
  float* momenta = args.momentum.data<float>() + begin;
  float* variances = args.variance.data<float>() + begin;
  ProductSum value_square, direction_square;
  for_lanes(end - begin, [&](int64_t i, auto step) HWY_ATTR {
    const Vector value = load(values + i, step);
    const Vector gradient = hn::Mul(f.scale, load(gradients + i, step));
    const Vector mean = hn::MulAdd(f.beta1, load(momenta + i, step), hn::Mul(f.rest1, gradient));
    const Vector momentum = hn::IfThenZeroElse(hn::Lt(hn::Abs(mean), smallest), mean);
    const Vector variance = hn::MulAdd(f.beta2, load(variances + i, step),
                                       hn::Mul(f.rest2, hn::Mul(gradient, gradient)));
    store(momentum, momenta + i, step);
    store(variance, variances + i, step);
    // Lanes past the end were read as zeros and do not contribute.
    value_square.add_square(value);
    direction_square.add_square(f.direction(value, momentum, variance, decay));
  });
  return {value_square.total(), direction_square.total()};
}

// The second pass. It recomputes u from what the first pass wrote: storing u would cost as much
// traffic, and four bytes per element.
template <class Compute>
void move_values(const LambUpdate& args, const Factors& f, int64_t begin, int64_t end,
                 double weight_decay, double rate, Compute* compute) {
  const Vector decay = set(static_cast<float>(weight_decay)),
               step_size = set(static_cast<float>(rate));
  float* values = args.value.data<float>() + begin;
  const float* momenta = args.momentum.data<float>() + begin;
  const float* variances = args.variance.data<float>() + begin;
  for_lanes(end - begin, [&](int64_t i, auto step) HWY_ATTR {
    const Vector value = load(values + i, step);
    const Vector direction =
        f.direction(value, load(momenta + i, step), load(variances + i, step), decay);
    const Vector result = hn::NegMulAdd(step_size, direction, value);
    store(result, values + i, step);
    if (compute != nullptr) store(result, compute + begin + i, step);
  });
}

template <class Compute>
void move_blocks(const LambUpdate& args, int64_t begin, int64_t end, Compute* compute) {
  const Factors factors{LambFactors(args)};
  for_lamb_blocks(args.tensors, begin, end,
                  [&](const LambTensor& tensor, int64_t, int64_t first, int64_t last) HWY_ATTR {
                    const int64_t index = &tensor - args.tensors.data();
                    const double ratio = args.ratio.data<float>()[index];
                    move_values(args, factors, first, last, tensor.weight_decay,
                                args.learning_rate * tensor.rate * ratio, compute);
                  });
}

void find_ratios(const LambUpdate& args, const Squares* squares) {
  float* ratio = args.ratio.data<float>();
  for (const LambTensor& tensor : args.tensors) {
    Squares sum;
    for (int64_t block = tensor.first_block; block < tensor.end_block(); ++block) {
      sum.value += squares[block].value;
      sum.direction += squares[block].direction;
    }
    *ratio++ = lamb_ratio(sum.value, sum.direction, args.min_ratio, args.max_ratio);
  }
}

void lamb_update(Context& context, const LambUpdate& args) {
  if (args.tensors.empty()) return;
  const int64_t blocks = args.tensors.back().end_block();
  const auto memory = context.scratch().take(blocks * static_cast<int64_t>(sizeof(Squares)));
  auto* squares = memory.as<Squares>();
  const int64_t grain = grain_for(kBlockElements);
  for_parts(context, blocks, grain, [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
    const Factors factors{LambFactors(args)};
    for_lamb_blocks(
        args.tensors, begin, end,
        [&](const LambTensor& tensor, int64_t block, int64_t first, int64_t last) HWY_ATTR {
          squares[block] = update_moments(args, factors, first, last, tensor.weight_decay);
        });
  });
  find_ratios(args, squares);
  for_parts(context, blocks, grain, [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
    if (args.compute_value.empty()) {
      return move_blocks(args, begin, end, static_cast<float*>(nullptr));
    }
    with_float_type(args.compute_value.dtype(), [&](auto tag) HWY_ATTR {
      move_blocks(args, begin, end, args.compute_value.template data<decltype(tag)>());
    });
  });
}

}  // namespace
}  // namespace onebit::updates::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::updates {

ONEBIT_CPU_OP(lamb_update, LambUpdate);

}  // namespace onebit::updates
#endif
