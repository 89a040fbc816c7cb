// The row arithmetic of attention's softmax, in f32 whatever the type of the products. A row is in
// an f32 buffer, padded to whole vectors.

#if defined(ONEBIT_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_SOFTMAX_INL_H_
#undef ONEBIT_KERNELS_SOFTMAX_INL_H_
#else
#define ONEBIT_KERNELS_SOFTMAX_INL_H_
#endif

#include <cmath>

#include "onebit/math/kernels/simd_dropout_inl.h"
#include "onebit/math/kernels/simd_math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

// The dropout bits of one query's probabilities of `keys` keys from `first` on, a multiple of
// kDropoutLanes.
HWY_INLINE void draw_score_bits(const DropoutPlan& plan, int64_t row, int64_t head, int64_t first,
                                int64_t keys, uint16_t* bits) {
  const uint32_t block = first_score_block(static_cast<uint32_t>(head)) +
                         static_cast<uint32_t>(first / int64_t{kDropoutLanes});
  draw_dropout_bits(plan, row, block, keys, bits);
}

// Scores of one query become exp(score - maximum), or 0 if dropped. Returns log(sum exp(score)).
HWY_INLINE float softmax_row(float* score, int64_t keys, const DropoutPlan& plan,
                             const uint16_t* bits, float& inverse_sum) {
  const Vector first = set(score[0]);
  Vector best = first;
  for_lanes(keys, [&](int64_t i, auto lanes) HWY_ATTR {
    Vector value = load(score + i, lanes);
    if constexpr (std::is_same_v<decltype(lanes), First>) {
      value = hn::IfThenElse(hn::FirstN(F32(), lanes.lanes), value, first);
    }
    best = hn::Max(best, value);
  });
  const float maximum = hn::GetLane(hn::MaxOfLanes(F32(), best));
  Chains sums;
  for_lanes_chained(keys, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    const Vector e = exponential(hn::Sub(load(score + i, lanes), set(maximum)));
    sums.chain[chain] = hn::Add(sums.chain[chain], keep(e, lanes));
    store(dropped(e, plan, bits, i), score + i, lanes);
  });
  const float sum = sums.sum();
  inverse_sum = 1.0f / sum;
  return maximum + std::log(sum);
}

// In: scores, and the gradients of the dropped probabilities. Out: the dropped probabilities, and
// the gradients of the scores: p * (dropout * grad - grad_dot_context).
HWY_INLINE void softmax_backward_row(float* probability, float* grad_score, int64_t keys,
                                     float log_sum_exp, float grad_dot_context,
                                     const DropoutPlan& plan, const uint16_t* bits) {
  for_lanes(keys, [&](int64_t i, auto lanes) HWY_ATTR {
    const Vector p = exponential(hn::Sub(load(probability + i, lanes), set(log_sum_exp)));
    const Vector grad = dropped(load(grad_score + i, lanes), plan, bits, i);
    store(dropped(p, plan, bits, i), probability + i, lanes);
    store(hn::Mul(p, hn::Sub(grad, set(grad_dot_context))), grad_score + i, lanes);
  });
}

template <typename T>
HWY_INLINE float row_dot(const T* a, const T* b, int64_t count) {
  Chains sums;
  for_lanes_chained(count, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    sums.chain[chain] = hn::MulAdd(load(a + i, lanes), load(b + i, lanes), sums.chain[chain]);
  });
  return sums.sum();
}

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
