#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/elementwise_cpu.cc"
#include "hwy/foreach_target.h"
//
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_dropout_inl.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/ops/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

// Calls body(index, lanes) over [0, count) on all threads.
template <class Body>
void for_elements(Context& context, int64_t count, const Body& body) {
  for_parts(context, count, grain_for(1), [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(end - begin, [&](int64_t i, auto lanes) HWY_ATTR { body(begin + i, lanes); });
  });
}

void cast(Context& context, const Cast& a) {
  with_float_type(a.from.dtype(), [&](auto from_tag) HWY_ATTR {
    with_float_type(a.to.dtype(), [&](auto to_tag) HWY_ATTR {
      const auto* from = a.from.template data<decltype(from_tag)>();
      auto* to = a.to.template data<decltype(to_tag)>();
      for_elements(context, a.to.elements(), [&](int64_t i, auto lanes) HWY_ATTR {
        store(load(from + i, lanes), to + i, lanes);
      });
    });
  });
}

void fill(Context& context, View x, float value) {
  with_float_type(x.dtype(), [&](auto tag) HWY_ATTR {
    auto* data = x.template data<decltype(tag)>();
    for_elements(context, x.elements(),
                 [&](int64_t i, auto lanes) HWY_ATTR { store(set(value), data + i, lanes); });
  });
}

void add(Context& context, const Add& a) {
  with_float_type(a.x.dtype(), [&](auto x_tag) HWY_ATTR {
    with_float_type(a.y.dtype(), [&](auto y_tag) HWY_ATTR {
      const auto* x = a.x.template data<decltype(x_tag)>();
      auto* y = a.y.template data<decltype(y_tag)>();
      for_elements(context, a.y.elements(), [&](int64_t i, auto lanes) HWY_ATTR {
        store(hn::Add(load(x + i, lanes), load(y + i, lanes)), y + i, lanes);
      });
    });
  });
}

void dropout(Context& context, const DropoutForward& a) {
  const int64_t rows = a.x.extent(0), columns = a.x.extent(1), grain = grain_for(columns);
  const DropoutPlan plan(a.dropout);
  const RowScratch scratch(context, part_count(context, rows, grain), columns);
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);

    for_parts(context, rows, grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
      uint16_t* bits = scratch.bits(part);
      for (int64_t row = begin; row < end; ++row) {
        const T* x = a.x.data<T>() + row * columns;
        T* y = a.y.data<T>() + row * columns;
        draw_dropout_bits(plan, row, 0, columns, bits);
        for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
          store(dropped(load(x + i, lanes), plan, bits, i), y + i, lanes);
        });
      }
    });
  });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

ONEBIT_CPU_OP(cast, Cast);
HWY_EXPORT(fill);
ONEBIT_CPU_OP(add, Add);

namespace cpu {

void fill_zero(Context& context, View x, std::span<const Range> ranges) {
  for (const Range& range : ranges) fill(context, x.rows(range.begin, range.end), 0.0f);
}

void fill(Context& context, View x, float value) {
  HWY_DYNAMIC_DISPATCH(fill)(context, x, value);
}

}  // namespace cpu

ONEBIT_CPU_OP(dropout, DropoutForward);

}  // namespace onebit::ops
#endif
