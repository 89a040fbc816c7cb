// Vectorized exp, normal distribution function and activations with f32 accuracy. NaN stays NaN.
// The polynomials were fitted at Chebyshev nodes with 40 digits.

#if defined(ONEBIT_KERNELS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_SIMD_MATH_INL_H_
#undef ONEBIT_KERNELS_SIMD_MATH_INL_H_
#else
#define ONEBIT_KERNELS_SIMD_MATH_INL_H_
#endif

#include "onebit/math/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

// The polynomial with these coefficients, lowest first.
template <size_t kCount>
HWY_INLINE Vector polynomial(Vector x, const float (&coefficients)[kCount]) {
  Vector result = set(coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) result = hn::MulAdd(result, x, set(coefficients[i]));
  return result;
}

// exp(x), x clamped to [-87.3, 88.3], to 2 units in the last place. x = n ln 2 + r with |r| <= ln 2
// /
// 2, ln 2 in two parts of which the first times n is exact.
HWY_INLINE Vector exponential(Vector x) {
  constexpr float kSeries[] = {0.5f, 0.166665752174f, 0.0416665524032f, 0.00836347272216f,
                               0.00139265504285f};
  const Vector low = set(-87.3f), high = set(88.3f), shifter = set(0x1.8p23f);
  x = hn::IfThenElse(hn::Lt(x, low), low, x);
  x = hn::IfThenElse(hn::Gt(x, high), high, x);
  const Vector shifted = hn::MulAdd(x, set(1.44269504089f), shifter);
  const Vector n = hn::Sub(shifted, shifter);
  Vector r = hn::NegMulAdd(n, set(0.693359375f), x);
  r = hn::NegMulAdd(n, set(-2.12194440e-4f), r);
  const Vector mantissa = hn::Add(hn::MulAdd(hn::Mul(r, r), polynomial(r, kSeries), r), set(1.0f));
  const auto biased = hn::Add(hn::BitCast(I32(), shifted), hn::Set(I32(), 127));
  return hn::Mul(mantissa, hn::BitCast(F32(), hn::ShiftLeft<23>(biased)));
}

// The values that GELU needs: P(X <= x) for a standard normal X, and its density at x.
struct Normal {
  Vector distribution, density;
};

// P(X <= -|x|) = density(x) * R(|x|), R a polynomial in t = 1 / (1 + 0.34 |x|), relative error 1e-8
// on [0, 6]: both tails keep their relative accuracy, which 1 + erf does not.
HWY_INLINE Normal normal(Vector x) {
  constexpr float kSeries[] = {0.1356583515f, 0.1356160595f,   0.1179370645f,
                               0.1070536901f, -0.02963217355f, 0.18543285f,
                               -0.262100144f, 0.1356014103f,   -0.02556711133f};
  const Vector t = hn::Div(set(1.0f), hn::MulAdd(hn::Abs(x), set(0.34f), set(1.0f)));
  const Vector bell = exponential(hn::Mul(hn::Mul(x, x), set(-0.5f)));
  const Vector tail = hn::Mul(hn::Mul(bell, t), polynomial(t, kSeries));
  const Vector distribution = hn::IfThenElse(hn::Lt(x, zero()), tail, hn::Sub(set(1.0f), tail));
  return {distribution, hn::Mul(bell, set(0.398942280401f))};
}

// P(X <= x) for results that are rounded to bf16: relative error 4e-5 for x >= -8, below that its
// value at -8. P(X <= -|x|) is 2 to the power of a polynomial in |x|, without a division.
HWY_INLINE Vector normal_distribution_for_bf16(Vector x) {
  constexpr float kLogarithm[] = {-1.000043093f,   -1.150609921f,   -0.4599568467f,
                                  -0.05263537812f, 0.007944578318f, -0.0008072482766f,
                                  4.820330053e-5f, -1.262458934e-6f};
  constexpr float kPower[] = {1.000000151f, 0.6931210359f, 0.240218655f, 0.05592202569f,
                              0.00968571122f};
  const Vector shifter = set(0x1.8p23f);
  const Vector logarithm = polynomial(hn::Min(hn::Abs(x), set(8.0f)), kLogarithm);
  const Vector shifted = hn::Add(logarithm, shifter);
  const Vector power = polynomial(hn::Sub(logarithm, hn::Sub(shifted, shifter)), kPower);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(I32(), shifted));
  const Vector tail = hn::BitCast(F32(), hn::Add(hn::BitCast(I32(), power), exponent));
  return hn::IfThenElse(hn::Lt(x, zero()), tail, hn::Sub(set(1.0f), tail));
}

HWY_INLINE Vector sigmoid(Vector x) {
  return hn::Div(set(1.0f), hn::Add(set(1.0f), exponential(hn::Neg(x))));
}

// tanh(x): near 0 by its odd series, elsewhere as 1 - 2 / (exp(2 |x|) + 1). Relative error 4e-7.
HWY_INLINE Vector hyperbolic_tangent(Vector x) {
  constexpr float kSeries[] = {-0.333333333f, 0.133333333f, -0.0539682540f, 0.0218694885f,
                               -0.00886323553f};
  const Vector magnitude = hn::Abs(x);
  const Vector square = hn::Mul(x, x);
  const Vector series =
      hn::MulAdd(hn::Mul(square, magnitude), polynomial(square, kSeries), magnitude);
  const Vector grown = exponential(hn::Add(magnitude, magnitude));
  const Vector far = hn::Sub(set(1.0f), hn::Div(set(2.0f), hn::Add(grown, set(1.0f))));
  const auto near = hn::Lt(magnitude, set(0.3f));
  return hn::CopySign(hn::IfThenElse(near, series, far), x);
}

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
