#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/sequence_mean_cpu.cc"
#include "hwy/foreach_target.h"
//
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/float_type.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/ops/sequence_mean.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

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

ONEBIT_CPU_OP(sequence_mean, SequenceMean);
ONEBIT_CPU_OP(sequence_mean_backward, SequenceMeanBackward);

}  // namespace onebit::ops
#endif
