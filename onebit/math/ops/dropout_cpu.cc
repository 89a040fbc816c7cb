#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/dropout_cpu.cc"
#include "hwy/foreach_target.h"
//
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/float_type.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/row_scratch.h"
#include "onebit/math/kernels/simd_dropout_inl.h"
#include "onebit/math/ops/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

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

ONEBIT_CPU_OP(dropout, DropoutForward);

}  // namespace onebit::ops
#endif
