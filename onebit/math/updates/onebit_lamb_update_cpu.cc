#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/updates/onebit_lamb_update_cpu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include <algorithm>

#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/product_sum_inl.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/kernels/still_lanes_inl.h"
#include "onebit/math/updates/onebit_lamb_update.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::updates::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

Vector constant(double value) {
  return set(static_cast<float>(value));
}

struct Sums {
  double of[kLambSums];
};

Sums sums_of(const OnebitLambSquares& args, const LambPart& part) {
  const double weight_decay = args.tensors[part.tensor].weight_decay;
  const Vector factor = constant(args.momentum_factor), decay = constant(weight_decay);
  const float* values = args.value.data<float>() + part.begin;
  const float* momenta = args.momentum.data<float>() + part.owned;
  ProductSum value_square, direction_square;
  // Lanes past the end are read as zeros and add nothing.
  const auto direction_of = [&](int64_t i, auto step) HWY_ATTR {
    const Vector value = load(values + i, step);
    const Vector quotient = hn::Mul(factor, load(momenta + i, step));
    const Vector direction = hn::MulAdd(decay, value, quotient);
    value_square.add_square(value);
    direction_square.add_square(direction);
    return direction;
  };
  const int64_t count = part.end - part.begin;
  if (args.residual.empty()) {
    for_lanes(count, [&](int64_t i, auto step) HWY_ATTR { direction_of(i, step); });
    return {{value_square.total(), direction_square.total(), 0}};
  }
  const float* residuals = args.residual.data<float>() + part.in_share;
  float* means = args.mean_residual.data<float>() + part.owned;
  const Vector share = constant(1.0 / args.sources), two = constant(2);
  const Vector unsent_factor = constant((1 - args.beta1) * args.momentum_factor);
  const Vector kept = constant(args.beta1), added = constant(1 - args.beta1);
  ProductSum difference;
  for_lanes(count, [&](int64_t i, auto step) HWY_ATTR {
    const Vector direction = direction_of(i, step);
    const Vector residual = load(residuals + i, step), mean = load(means + i, step);
    const Vector unsent = hn::Mul(unsent_factor, hn::Sub(residual, mean));
    difference.add(unsent, hn::MulAdd(share, unsent, hn::Mul(two, direction)));
    store(hn::MulAdd(kept, mean, hn::Mul(added, residual)), means + i, step);
  });
  return {{value_square.total(), direction_square.total(), difference.total()}};
}

void onebit_lamb_squares(Context& context, const OnebitLambSquares& args) {
  const auto parts = static_cast<int64_t>(args.parts.size());
  const auto memory = context.scratch().take(parts * static_cast<int64_t>(sizeof(Sums)));
  auto* part_sums = memory.as<Sums>();
  for_parts(context, parts, grain_for(kBlockElements),
            [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
              for (int64_t i = begin; i < end; ++i) {
                part_sums[i] = sums_of(args, args.parts[i]);
              }
            });
  auto* sums = args.sums.data<double>();
  std::fill_n(sums, args.sums.elements(), 0.0);
  for (int64_t i = 0; i < parts; ++i) {
    double* of_tensor = sums + kLambSums * args.parts[i].tensor;
    for (int64_t sum = 0; sum < kLambSums; ++sum) of_tensor[sum] += part_sums[i].of[sum];
  }
}

template <class Compute>
void step_span(const OnebitLambStep& args, int64_t begin, int64_t end, double weight_decay,
               double rate, Compute* compute) {
  const Vector factor = constant(args.momentum_factor), step_size = constant(rate);
  const Vector decay = constant(weight_decay);
  const float* momenta = args.momentum.data<float>() + begin;
  const uint8_t* still = args.still.data<uint8_t>();
  float* values = args.value.data<float>() + begin;
  for_lanes(end - begin, [&](int64_t i, auto step) HWY_ATTR {
    const Vector value = load(values + i, step);
    const Vector quotient = hn::Mul(factor, load(momenta + i, step));
    const Vector moved = hn::NegMulAdd(step_size, hn::MulAdd(decay, value, quotient), value);
    const Vector result = hn::IfThenElse(still_lanes(still, begin + i, step), value, moved);
    store(result, values + i, step);
    if (compute != nullptr) store(result, compute + begin + i, step);
  });
}

template <class Compute>
void step_blocks(const OnebitLambStep& args, int64_t begin, int64_t end, Compute* compute) {
  for_lamb_blocks(args.tensors, begin, end,
                  [&](const LambTensor& tensor, int64_t, int64_t first, int64_t last) HWY_ATTR {
                    const int64_t index = &tensor - args.tensors.data();
                    const double ratio = args.ratio.data<float>()[index];
                    step_span(args, first, last, tensor.weight_decay,
                              args.learning_rate * tensor.rate * ratio, compute);
                  });
}

void onebit_lamb_step(Context& context, const OnebitLambStep& args) {
  if (args.tensors.empty()) return;
  for_parts(context, args.tensors.back().end_block(), grain_for(kBlockElements),
            [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
              if (args.compute_value.empty()) {
                return step_blocks(args, begin, end, static_cast<float*>(nullptr));
              }
              with_float_type(args.compute_value.dtype(), [&](auto tag) HWY_ATTR {
                step_blocks(args, begin, end, args.compute_value.template data<decltype(tag)>());
              });
            });
}

}  // namespace
}  // namespace onebit::updates::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::updates {

ONEBIT_CPU_OP(onebit_lamb_squares, OnebitLambSquares);
ONEBIT_CPU_OP(onebit_lamb_step, OnebitLambStep);

}  // namespace onebit::updates
#endif
