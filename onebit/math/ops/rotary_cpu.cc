#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/rotary_cpu.cc"
#include "hwy/foreach_target.h"
//
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/ops/rotary.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

// Turns one head of a query or key. `sign` is 1, or -1 to turn back.
template <typename T>
HWY_INLINE void turn(T* head, const float* turns, int64_t half, float sign) {
  for_lanes(half, [&](int64_t i, auto lanes) HWY_ATTR {
    const Vector cosine = load(turns + i, lanes);
    const Vector sine = hn::Mul(load(turns + half + i, lanes), set(sign));
    const Vector first = load(head + i, lanes), second = load(head + half + i, lanes);
    store(hn::NegMulAdd(second, sine, hn::Mul(first, cosine)), head + i, lanes);
    store(hn::MulAdd(first, sine, hn::Mul(second, cosine)), head + half + i, lanes);
  });
}

void rotary(Context& context, const Rotary& a) {
  const int64_t rows = a.qkv.extent(0), columns = a.qkv.extent(1), size = a.turns.extent(1);
  const int32_t* positions = a.positions.data<int32_t>();
  const float sign = a.back ? -1.0f : 1.0f;
  with_float_type(a.qkv.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    for_parts(context, rows, grain_for(columns), [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t row = begin; row < end; ++row) {
        const float* turns = a.turns.data<float>() + positions[row] * size;
        T* head = a.qkv.template data<T>() + row * columns;
        for (int64_t i = 0; i < 2 * a.heads; ++i) turn(head + i * size, turns, size / 2, sign);
      }
    });
  });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

HWY_EXPORT(rotary);

namespace cpu {

void rotary(Context& context, const Rotary& a) {
  const int32_t* positions = a.positions.data<int32_t>();
  for (int64_t row = 0; row < a.positions.elements(); ++row) {
    require(0 <= positions[row] && positions[row] < a.turns.extent(0),
            "rotary: position {} of row {} is outside its table of {}", positions[row], row,
            a.turns.extent(0));
  }
  HWY_DYNAMIC_DISPATCH(rotary)(context, a);
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
