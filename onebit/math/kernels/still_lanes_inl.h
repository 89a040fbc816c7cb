// Bitmaps of still entries as vector masks. Compiled once per instruction set (simd_inl.h).

#if defined(ONEBIT_KERNELS_STILL_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_STILL_LANES_INL_H_
#undef ONEBIT_KERNELS_STILL_LANES_INL_H_
#else
#define ONEBIT_KERNELS_STILL_LANES_INL_H_
#endif

#include <cstring>

#include "onebit/math/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

HWY_INLINE int64_t lanes_of(All) {
  return lane_count();
}
HWY_INLINE int64_t lanes_of(First first) {
  return static_cast<int64_t>(first.lanes);
}

// The mask of still entries among the lanes from `element` on. The bitmap has the bit order of
// Highway, least significant first.
template <class Step>
HWY_INLINE auto still_lanes(const uint8_t* still, int64_t element, Step step) {
  uint64_t bits = 0;
  const int64_t bytes = (element % 8 + lanes_of(step) + 7) / 8;
  std::memcpy(&bits, still + element / 8, static_cast<size_t>(bytes));
  bits >>= element % 8;
  return hn::LoadMaskBits(F32(), reinterpret_cast<const uint8_t*>(&bits));
}

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
