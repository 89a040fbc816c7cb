#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/int8_linear_rows_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/ops/int8_linear_rows.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

using Integers = hn::Vec<I32>;

// Stores integers with 8 bits: those beyond the type's range become its ends.
template <typename T>
HWY_INLINE void store_bytes(Integers value, T* to, All) {
  const hn::Rebind<T, F32> bytes;
  hn::StoreU(hn::DemoteTo(bytes, value), bytes, to);
}
template <typename T>
HWY_INLINE void store_bytes(Integers value, T* to, First first) {
  T lanes[hn::MaxLanes(F32())];
  store_bytes(value, lanes, All{});
  std::memcpy(to, lanes, first.lanes);
}

HWY_INLINE Integers load_integers(const void* from, auto lanes) {
  return hn::BitCast(I32(), load(static_cast<const float*>(from), lanes));
}

// The ends of a row's range, which contains 0.
struct Extremes {
  float least, most;
  bool is_finite;
};

HWY_INLINE Extremes extremes_of(const float* row, int64_t columns) {
  Chains least, most, not_finite;
  for_lanes_chained(columns, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    const Vector x = load(row + i, lanes);
    least.chain[chain] = hn::Min(least.chain[chain], x);
    most.chain[chain] = hn::Max(most.chain[chain], x);
    // 0 * x is 0 unless x is infinite or NaN: then it stays NaN.
    not_finite.chain[chain] = hn::MulAdd(x, zero(), not_finite.chain[chain]);
  });
  const auto together = [](const Chains& chains, auto choose) HWY_ATTR {
    return choose(choose(chains.chain[0], chains.chain[1]),
                  choose(chains.chain[2], chains.chain[3]));
  };
  const Vector all_least =
      together(least, [](Vector a, Vector b) HWY_ATTR { return hn::Min(a, b); });
  const Vector all_most = together(most, [](Vector a, Vector b) HWY_ATTR { return hn::Max(a, b); });
  return {.least = hn::GetLane(hn::MinOfLanes(F32(), all_least)),
          .most = hn::GetLane(hn::MaxOfLanes(F32(), all_most)),
          .is_finite = not_finite.sum() == 0};
}

// How many f32 numbers lie between two neighbouring values.
struct Scale {
  float scale, inverse;
};

// A range of subnormal width would have an infinite inverse.
Scale scale_of(float range, float steps, bool is_finite) {
  constexpr float kNarrow = 0x1p-100f;
  if (!is_finite) return {.scale = std::numeric_limits<float>::quiet_NaN(), .inverse = 0};
  if (range < kNarrow) return {.scale = 0, .inverse = 0};
  const float scale = range / steps;
  return {.scale = scale, .inverse = 1 / scale};
}

void quantise_weight(Context& context, const QuantiseWeight& a) {
  for_parts(
      context, a.rows, grain_for(a.columns), [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t row = begin; row < end; ++row) {
          const float* weight = a.weight + row * a.columns;
          int8_t* values = a.values + row * a.columns;
          const Extremes range = extremes_of(weight, a.columns);
          const Scale scale = scale_of(std::max(-range.least, range.most), 127, range.is_finite);
          const Vector inverse = set(scale.inverse);
          Integers sum = hn::Zero(I32());
          for_lanes(a.columns, [&](int64_t i, auto lanes) HWY_ATTR {
            const Integers value = hn::NearestInt(hn::Mul(load(weight + i, lanes), inverse));
            sum = hn::Add(sum, value);
            store_bytes(value, values + i, lanes);
          });
          a.scales[row] = scale.scale;
          a.sums[row] = hn::GetLane(hn::SumOfLanes(I32(), sum));
        }
      });
}

void quantise_input(Context& context, const QuantiseInput& a) {
  for_parts(context, a.rows, grain_for(a.columns),
            [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
              for (int64_t row = begin; row < end; ++row) {
                const float* x = a.x + row * a.columns;
                uint8_t* values = a.values + row * a.columns;
                const Extremes range = extremes_of(x, a.columns);
                const Scale scale = scale_of(range.most - range.least, 255, range.is_finite);
                const Vector inverse = set(scale.inverse);
                const float zero = std::nearbyint(-range.least * scale.inverse);
                const int32_t whole_zero = range.is_finite ? static_cast<int32_t>(zero) : 0;
                const Integers zeros = hn::Set(I32(), whole_zero);
                for_lanes(a.columns, [&](int64_t i, auto lanes) HWY_ATTR {
                  const Integers value = hn::NearestInt(hn::Mul(load(x + i, lanes), inverse));
                  store_bytes(hn::Add(value, zeros), values + i, lanes);
                });
                a.scales[row] = scale.scale;
                a.zeros[row] = whole_zero;
              }
            });
}

void dequantise_sums(Context& context, const DequantiseSums& a) {
  for_parts(context, a.rows, grain_for(a.columns),
            [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
              for (int64_t row = begin; row < end; ++row) {
                float* y = a.y + row * a.columns;
                const Vector scale = set(a.scales[row]);
                const Integers zeros = hn::Set(I32(), a.zeros[row]);
                for_lanes(a.columns, [&](int64_t i, auto lanes) HWY_ATTR {
                  const Integers shift = hn::Mul(zeros, load_integers(a.weight_sums + i, lanes));
                  const Integers sum = hn::Sub(load_integers(y + i, lanes), shift);
                  const Vector scaled = hn::Mul(hn::ConvertTo(F32(), sum), scale);
                  const Vector bias =
                      a.bias == nullptr ? kernels::HWY_NAMESPACE::zero() : load(a.bias + i, lanes);
                  store(hn::MulAdd(scaled, load(a.weight_scales + i, lanes), bias), y + i, lanes);
                });
              }
            });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

ONEBIT_CPU_OP(quantise_weight, QuantiseWeight);
ONEBIT_CPU_OP(quantise_input, QuantiseInput);
ONEBIT_CPU_OP(dequantise_sums, DequantiseSums);

}  // namespace onebit::ops
#endif
