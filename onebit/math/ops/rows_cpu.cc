#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/rows_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <string_view>

#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/cpu_op.h"
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

// Calls body(first row, end, sequence) for each sequence, in parallel.
template <class Body>
void for_sequences(Context& context, const SequenceStarts& starts, int64_t columns,
                   const Body& body) {
  const auto sequences = static_cast<int64_t>(starts.host.size()) - 1;
  const int64_t rows = starts.host.back() / std::max<int64_t>(sequences, 1) + 1;
  for_parts(context, sequences, grain_for(columns * rows),
            [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
              for (int64_t s = begin; s < end; ++s) {
                const auto at = static_cast<size_t>(s);
                body(starts.host[at], starts.host[at + 1], s);
              }
            });
}

void sequence_mean(Context& context, const SequenceMean& a) {
  const int64_t columns = a.x.extent(1);
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    const T* x = a.x.template data<T>();
    float* y = a.y.data<float>();
    for_sequences(context, a.sequence_starts, columns,
                  [&](int64_t first, int64_t end, int64_t s) HWY_ATTR {
                    const Vector part = set(1.0f / static_cast<float>(end - first));
                    for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
                      Vector sum = zero();
                      for (int64_t row = first; row < end; ++row) {
                        sum = hn::Add(sum, load(x + row * columns + i, lanes));
                      }
                      store(hn::Mul(sum, part), y + s * columns + i, lanes);
                    });
                  });
  });
}

void sequence_mean_backward(Context& context, const SequenceMeanBackward& a) {
  const int64_t columns = a.grad_x.extent(1);
  with_float_type(a.grad_x.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    const float* grad_y = a.grad_y.data<float>();
    T* grad_x = a.grad_x.template data<T>();
    for_sequences(context, a.sequence_starts, columns,
                  [&](int64_t first, int64_t end, int64_t s) HWY_ATTR {
                    const Vector part = set(1.0f / static_cast<float>(end - first));
                    for (int64_t row = first; row < end; ++row) {
                      for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
                        store(hn::Mul(load(grad_y + s * columns + i, lanes), part),
                              grad_x + row * columns + i, lanes);
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

ONEBIT_CPU_OP(sequence_mean, SequenceMean);
ONEBIT_CPU_OP(sequence_mean_backward, SequenceMeanBackward);

}  // namespace onebit::ops
#endif
