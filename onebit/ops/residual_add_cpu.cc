#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/ops/residual_add_cpu.cc"
#include "hwy/foreach_target.h"
//
#include "onebit/ops/column_partials.h"
#include "onebit/ops/cpu_ops.h"
#include "onebit/ops/parts.h"
#include "onebit/ops/row_scratch.h"
#include "onebit/ops/simd_dropout_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {
namespace {

template <typename T>
void add_row(const ResidualAdd& a, const DropoutPlan& plan, int64_t row, int64_t hidden,
             uint16_t* bits) {
  const T* residual = a.residual.data<T>() + row * hidden;
  const T* x = a.x.data<T>() + row * hidden;
  T* y = a.y.data<T>() + row * hidden;
  if (plan.active()) draw_dropout_bits(plan, plan.row_keys[row], 0, hidden, bits);
  for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
    const Vector added = dropped(load(x + i, lanes), plan, bits + i);
    store(hn::Add(load(residual + i, lanes), added), y + i, lanes);
  });
}

void residual_add(Context& context, const ResidualAdd& a) {
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1), grain = grain_for(hidden);
  const DropoutPlan plan(a.dropout);
  const RowScratch scratch(context, part_count(context, rows, grain), hidden);
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, rows, grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t row = begin; row < end; ++row) {
        add_row<decltype(tag)>(a, plan, row, hidden, scratch.bits(part));
      }
    });
  });
}

template <typename T>
void backward_row(const ResidualAddBackward& a, const DropoutPlan& plan, int64_t row,
                  int64_t hidden, float* grad_bias, uint16_t* bits) {
  const T* grad_y = a.grad_y.data<T>() + row * hidden;
  T* grad_x = a.grad_x.empty() ? nullptr : a.grad_x.data<T>() + row * hidden;
  if (plan.active()) draw_dropout_bits(plan, plan.row_keys[row], 0, hidden, bits);
  for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
    const Vector value = dropped(load(grad_y + i, lanes), plan, bits + i);
    if (grad_x != nullptr) store(value, grad_x + i, lanes);
    if (grad_bias != nullptr) {
      store(hn::Add(load(grad_bias + i, lanes), value), grad_bias + i, lanes);
    }
  });
}

void residual_add_backward(Context& context, const ResidualAddBackward& a) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  const DropoutPlan plan(a.dropout);
  const RowBlocks blocks(rows);
  const int64_t grain = grain_for(hidden * blocks.rows_per_block());
  const RowScratch scratch(context, part_count(context, blocks.count(), grain), hidden);
  ColumnPartials sums(context, blocks, hidden, 1);
  with_float_type(a.grad_y.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(
        context, blocks.count(), grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
          for (int64_t block = begin; block < end; ++block) {
            sums.clear(block);
            float* grad_bias = a.grad_bias.empty() ? nullptr : sums.of(0, block);
            for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
              backward_row<decltype(tag)>(a, plan, row, hidden, grad_bias, scratch.bits(part));
            }
          }
        });
  });
  if (!a.grad_bias.empty()) sums.add_to(context, 0, a.grad_bias.data<float>());
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

HWY_EXPORT(residual_add);
HWY_EXPORT(residual_add_backward);

namespace cpu {

void residual_add(Context& context, const ResidualAdd& a) {
  HWY_DYNAMIC_DISPATCH(residual_add)(context, a);
}

void residual_add_backward(Context& context, const ResidualAddBackward& a) {
  HWY_DYNAMIC_DISPATCH(residual_add_backward)(context, a);
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
