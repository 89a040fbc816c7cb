#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/layer_norm_cpu.cc"
#include "hwy/foreach_target.h"
//
#include "onebit/math/kernels/column_partials.h"
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/norm_inl.h"
#include "onebit/math/kernels/simd_dropout_inl.h"
#include "onebit/math/ops/layer_norm.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

// A is LayerNorm or ResidualNorm.
template <class A>
void store_statistics(const A& a, int64_t row, RowStatistics statistics) {
  if (a.inverse_stddev.empty()) return;
  a.inverse_stddev.template data<float>()[row] = statistics.inverse_stddev;
  if (a.kind == NormKind::kLayer) a.mean.template data<float>()[row] = statistics.mean;
}

template <typename T>
void forward_row(const LayerNorm& a, const float* beta, int64_t row, int64_t hidden,
                 float* buffer) {
  const T* x = a.x.data<T>() + row * hidden;
  T* y = a.y.data<T>() + row * hidden;
  Chains total;
  for_lanes_chained(hidden, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    const Vector value = load(x + i, lanes);
    store(value, buffer + i, lanes);
    total.chain[chain] = hn::Add(total.chain[chain], value);
  });
  const RowStatistics statistics = row_statistics(a.kind, buffer, hidden, total.sum(), a.epsilon);
  const float* gamma = a.gamma.data<float>();
  for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
    store(normalised(buffer, i, lanes, statistics, gamma, beta), y + i, lanes);
  });
  store_statistics(a, row, statistics);
}

void layer_norm(Context& context, const LayerNorm& a) {
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1), grain = grain_for(hidden);
  const RowScratch scratch(context, part_count(context, rows, grain), hidden);
  const ValuesOrZeros beta(context, a.beta, hidden);
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, rows, grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t row = begin; row < end; ++row) {
        forward_row<decltype(tag)>(a, beta.data(), row, hidden, scratch.first(part));
      }
    });
  });
}

enum Sum { kGamma, kBeta, kBias };  // layer_norm has no bias

template <typename T, class Source>
void backward_rows(Context& context, const LayerNormBackward& a, const Source& source) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  const RowBlocks blocks(rows);
  const int64_t grain = grain_for(hidden * blocks.rows_per_block());
  const RowScratch scratch(context, part_count(context, blocks.count(), grain), hidden);
  ColumnPartials sums(context, blocks, hidden, 2);
  const T* grad_y = a.grad_y.data<T>();
  T* grad_x = a.grad_x.data<T>();
  const float *gamma = a.gamma.data<float>(), *inverse_stddev = a.inverse_stddev.data<float>();
  for_parts(context, blocks.count(), grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
    NormGradientRow gradient{
        .x_hat = scratch.first(part), .grad = scratch.second(part), .kind = a.kind};
    for (int64_t block = begin; block < end; ++block) {
      sums.clear(block);
      for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
        gradient.gather(source, row, hidden, gamma, sums.of(kGamma, block), sums.of(kBeta, block),
                        [&](int64_t i, auto lanes)
                            HWY_ATTR { return load(grad_y + row * hidden + i, lanes); });
        for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
          store(gradient.grad_input(i, lanes, inverse_stddev[row]), grad_x + row * hidden + i,
                lanes);
        });
      }
    }
  });
  sums.add_to(context, kGamma, a.grad_gamma.data<float>());
  if (!a.grad_beta.empty()) sums.add_to(context, kBeta, a.grad_beta.data<float>());
}

// Calls body with the source of the normalised values. A is LayerNormBackward or
// ResidualNormBackward, and `input` the norm's input, or empty.
template <typename T, class A, class Body>
void with_source(Context& context, const A& a, const ConstView& input, const Body& body) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  if (!input.empty()) {
    const ConstView given = a.kind == NormKind::kLayer ? a.mean : ConstView();
    const ValuesOrZeros mean(context, given, rows);
    return body(
        FromInput<T>{input.data<T>(), mean.data(), a.inverse_stddev.template data<float>()});
  }
  const auto inverse_gamma = context.scratch().take(hidden * 4);
  const ValuesOrZeros beta(context, a.beta, hidden);
  invert_gamma(a.gamma.template data<float>(), hidden, inverse_gamma.template as<float>());
  body(FromOutput<T>{a.y.template data<T>(), beta.data(), inverse_gamma.template as<float>()});
}

void layer_norm_backward(Context& context, const LayerNormBackward& a) {
  with_float_type(a.grad_y.dtype(), [&](auto tag) HWY_ATTR {
    with_source<decltype(tag)>(context, a, a.x, [&](const auto& source) HWY_ATTR {
      backward_rows<decltype(tag)>(context, a, source);
    });
  });
}

template <typename T>
void forward_row(const ResidualNorm& a, const float* beta, const DropoutPlan& plan, int64_t row,
                 int64_t hidden, float* buffer, uint16_t* bits) {
  const T* residual = a.residual.data<T>() + row * hidden;
  const T* x = a.x.data<T>() + row * hidden;
  T* sum = a.sum.empty() ? nullptr : a.sum.data<T>() + row * hidden;
  T* y = a.y.data<T>() + row * hidden;
  draw_dropout_bits(plan, row, 0, hidden, bits);
  Chains total;
  for_lanes_chained(hidden, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    const Vector added = hn::Mul(dropped(load(x + i, lanes), plan, bits, i), set(a.factor));
    const Vector value = hn::Add(load(residual + i, lanes), added);
    store(value, buffer + i, lanes);
    if (sum != nullptr) store(value, sum + i, lanes);
    total.chain[chain] = hn::Add(total.chain[chain], value);
  });
  const RowStatistics statistics = row_statistics(a.kind, buffer, hidden, total.sum(), a.epsilon);
  const float* gamma = a.gamma.data<float>();
  for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
    store(normalised(buffer, i, lanes, statistics, gamma, beta), y + i, lanes);
  });
  store_statistics(a, row, statistics);
}

void residual_norm(Context& context, const ResidualNorm& a) {
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1), grain = grain_for(hidden);
  const DropoutPlan plan(a.dropout);
  const RowScratch scratch(context, part_count(context, rows, grain), hidden);
  const ValuesOrZeros beta(context, a.beta, hidden);
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, rows, grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t row = begin; row < end; ++row) {
        forward_row<decltype(tag)>(a, beta.data(), plan, row, hidden, scratch.first(part),
                                   scratch.bits(part));
      }
    });
  });
}

// One row of the backward pass. `block` selects the partial sums that it adds to.
template <typename T, class Source>
HWY_INLINE void backward_row(const ResidualNormBackward& a, const Source& source,
                             const DropoutPlan& plan, const ColumnPartials& sums, int64_t block,
                             int64_t row, int64_t hidden, NormGradientRow& gradient,
                             uint16_t* bits) {
  const auto optional = [&](const ConstView& view) HWY_ATTR {
    return view.empty() ? nullptr : static_cast<T*>(const_cast<void*>(view.raw())) + row * hidden;
  };
  const T* grad_y = a.grad_y.data<T>() + row * hidden;
  const T *grad_y_extra = optional(a.grad_y_extra), *grad_sum_extra = optional(a.grad_sum_extra);
  gradient.gather(source, row, hidden, a.gamma.data<float>(), sums.of(kGamma, block),
                  sums.of(kBeta, block), [&](int64_t i, auto lanes) HWY_ATTR {
                    const Vector first = load(grad_y + i, lanes);
                    if (grad_y_extra == nullptr) return first;
                    return hn::Add(first, load(grad_y_extra + i, lanes));
                  });
  T* grad_residual = a.grad_residual.data<T>() + row * hidden;
  T* grad_x = optional(a.grad_x);
  float* grad_bias = a.grad_bias.empty() ? nullptr : sums.of(kBias, block);
  const float inverse_stddev = a.inverse_stddev.data<float>()[row];
  draw_dropout_bits(plan, row, 0, hidden, bits);
  for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
    Vector grad_sum = gradient.grad_input(i, lanes, inverse_stddev);
    if (grad_sum_extra != nullptr) grad_sum = hn::Add(grad_sum, load(grad_sum_extra + i, lanes));
    const Vector into_x = hn::Mul(dropped(grad_sum, plan, bits, i), set(a.factor));
    store(grad_sum, grad_residual + i, lanes);
    if (grad_x != nullptr) store(into_x, grad_x + i, lanes);
    if (grad_bias != nullptr) {
      store(hn::Add(load(grad_bias + i, lanes), into_x), grad_bias + i, lanes);
    }
  });
}

template <typename T, class Source>
void backward_rows(Context& context, const ResidualNormBackward& a, const Source& source,
                   const DropoutPlan& plan) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  const RowBlocks blocks(rows);
  const int64_t grain = grain_for(hidden * blocks.rows_per_block());
  const RowScratch scratch(context, part_count(context, blocks.count(), grain), hidden);
  ColumnPartials sums(context, blocks, hidden, 3);
  for_parts(context, blocks.count(), grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
    NormGradientRow gradient{
        .x_hat = scratch.first(part), .grad = scratch.second(part), .kind = a.kind};
    for (int64_t block = begin; block < end; ++block) {
      sums.clear(block);
      for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
        backward_row<T>(a, source, plan, sums, block, row, hidden, gradient, scratch.bits(part));
      }
    }
  });
  sums.add_to(context, kGamma, a.grad_gamma.data<float>());
  if (!a.grad_beta.empty()) sums.add_to(context, kBeta, a.grad_beta.data<float>());
  if (!a.grad_bias.empty()) sums.add_to(context, kBias, a.grad_bias.data<float>());
}

void residual_norm_backward(Context& context, const ResidualNormBackward& a) {
  const DropoutPlan plan(a.dropout);
  with_float_type(a.grad_y.dtype(), [&](auto tag) HWY_ATTR {
    with_source<decltype(tag)>(context, a, a.sum, [&](const auto& source) HWY_ATTR {
      backward_rows<decltype(tag)>(context, a, source, plan);
    });
  });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

ONEBIT_CPU_OP(layer_norm, LayerNorm);
ONEBIT_CPU_OP(layer_norm_backward, LayerNormBackward);

ONEBIT_CPU_OP(residual_norm, ResidualNorm);
ONEBIT_CPU_OP(residual_norm_backward, ResidualNormBackward);

}  // namespace onebit::ops
#endif
