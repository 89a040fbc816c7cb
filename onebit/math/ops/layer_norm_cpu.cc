#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/layer_norm_cpu.cc"
#include "hwy/foreach_target.h"
//
#include "onebit/math/kernels/column_partials.h"
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/float_type.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/norm_inl.h"
#include "onebit/math/kernels/row_scratch.h"
#include "onebit/math/ops/layer_norm.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

template <typename T>
void forward_row(const LayerNorm& a, int64_t row, int64_t hidden, float* buffer) {
  const T* x = a.x.data<T>() + row * hidden;
  T* y = a.y.data<T>() + row * hidden;
  Chains total;
  for_lanes_chained(hidden, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    const Vector value = load(x + i, lanes);
    store(value, buffer + i, lanes);
    total.chain[chain] = hn::Add(total.chain[chain], value);
  });
  const RowStatistics statistics = row_statistics(buffer, hidden, total.sum(), a.epsilon);
  const float *gamma = a.gamma.data<float>(), *beta = a.beta.data<float>();
  for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
    store(normalised(buffer, i, lanes, statistics, gamma, beta), y + i, lanes);
  });
  if (!a.mean.empty()) {
    a.mean.data<float>()[row] = statistics.mean;
    a.inverse_stddev.data<float>()[row] = statistics.inverse_stddev;
  }
}

void layer_norm(Context& context, const LayerNorm& a) {
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1), grain = grain_for(hidden);
  const RowScratch scratch(context, part_count(context, rows, grain), hidden);
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, rows, grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t row = begin; row < end; ++row) {
        forward_row<decltype(tag)>(a, row, hidden, scratch.first(part));
      }
    });
  });
}

enum Sum { kGamma, kBeta };

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
    NormGradientRow gradient{.x_hat = scratch.first(part), .grad = scratch.second(part)};
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
  sums.add_to(context, kBeta, a.grad_beta.data<float>());
}

void layer_norm_backward(Context& context, const LayerNormBackward& a) {
  const int64_t hidden = a.grad_y.extent(1);
  const auto inverse_gamma = context.scratch().take(hidden * 4);
  with_float_type(a.grad_y.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    if (!a.x.empty()) {
      const FromInput<T> source{a.x.data<T>(), a.mean.data<float>(),
                                a.inverse_stddev.data<float>()};
      return backward_rows<T>(context, a, source);
    }
    invert_gamma(a.gamma.data<float>(), hidden, inverse_gamma.template as<float>());
    const FromOutput<T> source{a.y.data<T>(), a.beta.data<float>(),
                               inverse_gamma.template as<float>()};
    backward_rows<T>(context, a, source);
  });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

ONEBIT_CPU_OP(layer_norm, LayerNorm);
ONEBIT_CPU_OP(layer_norm_backward, LayerNormBackward);

}  // namespace onebit::ops
#endif
