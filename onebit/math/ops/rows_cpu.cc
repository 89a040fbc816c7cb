#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/rows_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <string_view>

#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/float_type.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/ops/rows.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

void gather_rows(Context& context, const GatherRows& a) {
  const int64_t row_bytes = a.x.extent(1) * size_bytes_of(a.x.dtype());
  const auto* from = static_cast<const std::byte*>(a.x.raw());
  auto* to = static_cast<std::byte*>(a.y.raw());
  const int32_t* indices = a.indices.data<int32_t>();
  for_parts(context, a.y.extent(0), grain_for(a.x.extent(1)),
            [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
              for (int64_t row = begin; row < end; ++row) {
                std::memcpy(to + row * row_bytes, from + indices[row] * row_bytes,
                            static_cast<size_t>(row_bytes));
              }
            });
}

void scatter_add_rows(Context& context, const ScatterAddRows& a) {
  const int64_t columns = a.x.extent(1);
  const int32_t* indices = a.indices.data<int32_t>();
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    for_parts(context, a.x.extent(0), grain_for(columns),
              [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                for (int64_t row = begin; row < end; ++row) {
                  const T* from = a.x.template data<T>() + row * columns;
                  T* to = a.y.template data<T>() + indices[row] * columns;
                  for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
                    store(hn::Add(load(to + i, lanes), load(from + i, lanes)), to + i, lanes);
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

HWY_EXPORT(gather_rows);
HWY_EXPORT(scatter_add_rows);

namespace cpu {

namespace {

void check_indices(std::string_view operation, ConstView indices, int64_t rows) {
  const int32_t* index = indices.data<int32_t>();
  for (int64_t i = 0; i < indices.elements(); ++i) {
    require(0 <= index[i] && index[i] < rows, "{}: index {} at {} is outside [0, {})", operation,
            index[i], i, rows);
  }
}

void check_distinct(Context& context, ConstView indices, int64_t rows) {
  const auto seen = context.scratch().take(rows);
  std::memset(seen.data(), 0, static_cast<size_t>(rows));
  const int32_t* index = indices.data<int32_t>();
  for (int64_t i = 0; i < indices.elements(); ++i) {
    std::byte& mark = seen.data()[index[i]];
    require(mark == std::byte{0}, "scatter_add_rows: index {} at {} is given twice", index[i], i);
    mark = std::byte{1};
  }
}

}  // namespace

void gather_rows(Context& context, const GatherRows& a) {
  check_indices("gather_rows", a.indices, a.x.extent(0));
  HWY_DYNAMIC_DISPATCH(gather_rows)(context, a);
}

void scatter_add_rows(Context& context, const ScatterAddRows& a) {
  check_indices("scatter_add_rows", a.indices, a.y.extent(0));
  check_distinct(context, a.indices, a.y.extent(0));
  HWY_DYNAMIC_DISPATCH(scatter_add_rows)(context, a);
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
