// Building blocks of vector loops: full-width f32 vectors, loads and stores that widen and round
// the activation types, loops with a tail. Compiled once per instruction set (Highway's
// foreach_target), hence the unusual guard.

#if defined(ONEBIT_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_SIMD_INL_H_
#undef ONEBIT_KERNELS_SIMD_INL_H_
#else
#define ONEBIT_KERNELS_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "onebit/ground/base/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using Vector = hn::Vec<F32>;

HWY_INLINE int64_t lane_count() {
  return static_cast<int64_t>(hn::Lanes(F32()));
}

// How much of a vector a loop step covers.
struct All {};
struct First {
  size_t lanes;
};

HWY_INLINE Vector set(float value) {
  return hn::Set(F32(), value);
}
HWY_INLINE Vector zero() {
  return hn::Zero(F32());
}

// Loads. Lanes past First are zero.
HWY_INLINE Vector load(const float* from, All) {
  return hn::LoadU(F32(), from);
}
HWY_INLINE Vector load(const bf16* from, All) {
  const auto bits = hn::LoadU(U16(), reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
}
// f16 on a CPU is implemented for correctness, not for speed: element by element.
inline HWY_NOINLINE Vector load(const f16* from, All) {
  HWY_ALIGN float lanes[hn::MaxLanes(F32())];
  for (size_t i = 0; i < hn::Lanes(F32()); ++i) lanes[i] = static_cast<float>(from[i]);
  return hn::Load(F32(), lanes);
}
template <typename T>
HWY_NOINLINE Vector load(const T* from, First first) {
  T lanes[hn::MaxLanes(F32())] = {};
  std::memcpy(static_cast<void*>(lanes), from, first.lanes * sizeof(T));
  return load(lanes, All{});
}

// Stores, rounded to nearest even. Lanes past First are unchanged.
HWY_INLINE void store(Vector value, float* to, All) {
  hn::StoreU(value, F32(), to);
}
HWY_INLINE void store(Vector value, bf16* to, All) {
  const U32 words;
  const auto bits = hn::BitCast(words, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(words, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7FFFu))));
  const auto quiet = hn::Or(high, hn::Set(words, 0x40u));
  const auto is_nan = hn::RebindMask(words, hn::IsNaN(value));
  const auto chosen = hn::BitCast(I32(), hn::IfThenElse(is_nan, quiet, rounded));
  hn::StoreU(hn::DemoteTo(U16(), chosen), U16(), reinterpret_cast<uint16_t*>(to));
}
inline HWY_NOINLINE void store(Vector value, f16* to, All) {
  HWY_ALIGN float lanes[hn::MaxLanes(F32())];
  hn::Store(value, F32(), lanes);
  for (size_t i = 0; i < hn::Lanes(F32()); ++i) to[i] = f16(lanes[i]);
}
template <typename T>
HWY_NOINLINE void store(Vector value, T* to, First first) {
  T lanes[hn::MaxLanes(F32())];
  store(value, lanes, All{});
  std::memcpy(static_cast<void*>(to), lanes, first.lanes * sizeof(T));
}

// Sets lanes outside the step to zero, for sums.
HWY_INLINE Vector keep(Vector value, All) {
  return value;
}
HWY_INLINE Vector keep(Vector value, First first) {
  return hn::IfThenElseZero(hn::FirstN(F32(), first.lanes), value);
}

// Calls body(index, All or First) over [0, count).
template <class Body>
HWY_INLINE void for_lanes(int64_t count, const Body& body) {
  const int64_t lanes = lane_count();
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(i, All{});
  if (i < count) body(i, First{static_cast<size_t>(count - i)});
}

// As for_lanes, with four steps in flight: calls body(index, All or First, chain), where the
// constant chain, 0 to 3, selects the accumulator, so that sums do not wait for each other.
template <class Body>
HWY_INLINE void for_lanes_chained(int64_t count, const Body& body) {
  const int64_t lanes = lane_count();
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    body(i, All{}, std::integral_constant<int, 0>());
    body(i + lanes, All{}, std::integral_constant<int, 1>());
    body(i + 2 * lanes, All{}, std::integral_constant<int, 2>());
    body(i + 3 * lanes, All{}, std::integral_constant<int, 3>());
  }
  for (; i + lanes <= count; i += lanes) body(i, All{}, std::integral_constant<int, 0>());
  if (i < count) {
    body(i, First{static_cast<size_t>(count - i)}, std::integral_constant<int, 1>());
  }
}

// Four accumulators for for_lanes_chained.
struct Chains {
  Vector chain[4];

  HWY_INLINE Chains() : chain{zero(), zero(), zero(), zero()} {}
  HWY_INLINE Vector total() const {
    return hn::Add(hn::Add(chain[0], chain[1]), hn::Add(chain[2], chain[3]));
  }
  HWY_INLINE float sum() const { return hn::GetLane(hn::SumOfLanes(F32(), total())); }
};

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
