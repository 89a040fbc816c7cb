// Sums of products in f64. Compiled once for every instruction set (simd_inl.h).

#if defined(ONEBIT_KERNELS_PRODUCT_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_PRODUCT_SUM_INL_H_
#undef ONEBIT_KERNELS_PRODUCT_SUM_INL_H_
#else
#define ONEBIT_KERNELS_PRODUCT_SUM_INL_H_
#endif

#include "onebit/math/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

// A running sum of products: products of values near the limits of f32 neither overflow nor vanish,
// and the ratio of two norms is exact to the last bit of f32.
class ProductSum {
  using F64 = hn::ScalableTag<double>;
  using Doubles = hn::Vec<F64>;

 public:
  HWY_INLINE ProductSum() : low_(hn::Zero(F64())), high_(hn::Zero(F64())) {}
  HWY_INLINE void add(Vector x, Vector y) {
    low_ = hn::MulAdd(low_half(x), low_half(y), low_);
    high_ = hn::MulAdd(high_half(x), high_half(y), high_);
  }
  HWY_INLINE void add_square(Vector x) { add(x, x); }
  HWY_INLINE double total() const {
    return hn::GetLane(hn::SumOfLanes(F64(), hn::Add(low_, high_)));
  }

 private:
#if HWY_TARGET == HWY_SCALAR
  // A single lane has no halves.
  static HWY_INLINE Doubles low_half(Vector x) {
    return hn::PromoteTo(F64(), x);
  }
  static HWY_INLINE Doubles high_half(Vector) {
    return hn::Zero(F64());
  }
#else
  static HWY_INLINE Doubles low_half(Vector x) {
    return hn::PromoteTo(F64(), hn::LowerHalf(hn::Rebind<float, F64>(), x));
  }
  static HWY_INLINE Doubles high_half(Vector x) {
    return hn::PromoteTo(F64(), hn::UpperHalf(hn::Rebind<float, F64>(), x));
  }
#endif

  Doubles low_, high_;
};

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
