// Sums of squares in f64. Compiled once for every instruction set (simd_inl.h).

#if defined(ONEBIT_KERNELS_SQUARE_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_SQUARE_SUM_INL_H_
#undef ONEBIT_KERNELS_SQUARE_SUM_INL_H_
#else
#define ONEBIT_KERNELS_SQUARE_SUM_INL_H_
#endif

#include "onebit/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

// A running sum of squares: squares of values near the limits of f32 neither overflow nor vanish,
// and the ratio of two norms is exact to the last bit of f32.
class SquareSum {
  using F64 = hn::ScalableTag<double>;
  using Doubles = hn::Vec<F64>;

 public:
  HWY_INLINE SquareSum() : low_(hn::Zero(F64())), high_(hn::Zero(F64())) {}
  HWY_INLINE void add(Vector x) {
#if HWY_TARGET == HWY_SCALAR
    // A single lane has no halves.
    const Doubles low = hn::PromoteTo(F64(), x), high = hn::Zero(F64());
#else
    const hn::Rebind<float, F64> half;
    const Doubles low = hn::PromoteTo(F64(), hn::LowerHalf(half, x));
    const Doubles high = hn::PromoteTo(F64(), hn::UpperHalf(half, x));
#endif
    low_ = hn::MulAdd(low, low, low_);
    high_ = hn::MulAdd(high, high, high_);
  }
  HWY_INLINE double total() const {
    return hn::GetLane(hn::SumOfLanes(F64(), hn::Add(low_, high_)));
  }

 private:
  Doubles low_, high_;
};

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
