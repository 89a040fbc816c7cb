#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/cross_entropy_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>

#include "onebit/math/kernels/float_type.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_math_inl.h"
#include "onebit/math/ops/cross_entropy.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

template <typename T>
HWY_INLINE float largest(const T* logits, int64_t classes) {
  Vector best = set(static_cast<float>(logits[0]));
  const Vector first = best;
  for_lanes(classes, [&](int64_t i, auto lanes) HWY_ATTR {
    Vector value = load(logits + i, lanes);
    if constexpr (std::is_same_v<decltype(lanes), First>) {
      value = hn::IfThenElse(hn::FirstN(F32(), lanes.lanes), value, first);
    }
    best = hn::Max(best, value);
  });
  return hn::GetLane(hn::MaxOfLanes(F32(), best));
}

// Sum of exp(logit - shift): f32 within a chunk, f64 over chunks.
template <typename T>
HWY_INLINE double sum_of_exponentials(const T* logits, int64_t classes, float shift) {
  constexpr int64_t kChunk = 2048;
  double total = 0;
  for (int64_t begin = 0; begin < classes; begin += kChunk) {
    Chains sums;
    for_lanes_chained(std::min(kChunk, classes - begin),
                      [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
                        const Vector value = load(logits + begin + i, lanes);
                        const Vector e = exponential(hn::Sub(value, set(shift)));
                        sums.chain[chain] = hn::Add(sums.chain[chain], keep(e, lanes));
                      });
    total += double{sums.sum()};
  }
  return total;
}

// Whether `target` is the first column that holds `maximum`.
template <typename T>
bool is_first_largest(const T* logits, int64_t target, float maximum) {
  if (static_cast<float>(logits[target]) != maximum) return false;
  for (int64_t i = 0; i < target; ++i) {
    if (static_cast<float>(logits[i]) == maximum) return false;
  }
  return true;
}

template <typename T>
void row(const CrossEntropy& a, int64_t index) {
  const int64_t stride = a.logits.extent(1);
  T* logits = a.logits.data<T>() + index * stride;
  const int32_t target = a.targets.data<int32_t>()[index];
  float& loss = a.losses.data<float>()[index];
  uint8_t* correct = a.correct.empty() ? nullptr : a.correct.data<uint8_t>() + index;
  if (target == kIgnoredTarget) {
    loss = 0;
    if (correct != nullptr) *correct = 0;
    if (a.write_gradient)
      std::memset(static_cast<void*>(logits), 0, sizeof(T) * static_cast<size_t>(stride));
    return;
  }
  const float maximum = largest(logits, a.classes);
  const double log_sum = std::log(sum_of_exponentials(logits, a.classes, maximum));
  const float weight = a.class_weights.empty() ? 1 : a.class_weights.data<float>()[target];
  loss = static_cast<float>(double{weight} *
                            (log_sum + (double{maximum} - static_cast<float>(logits[target]))));
  if (correct != nullptr) *correct = is_first_largest(logits, target, maximum);
  if (!a.write_gradient) return;
  const float of_target = static_cast<float>(logits[target]);
  const float log_partition = static_cast<float>(log_sum);
  const float scale = weight * a.gradient_scale;
  for_lanes(a.classes, [&](int64_t i, auto lanes) HWY_ATTR {
    const Vector shifted = hn::Sub(load(logits + i, lanes), set(maximum));
    const Vector probability = exponential(hn::Sub(shifted, set(log_partition)));
    store(hn::Mul(probability, set(scale)), logits + i, lanes);
  });
  const float probability = std::exp((of_target - maximum) - log_partition);
  logits[target] = T((probability - 1.0f) * scale);
  std::memset(static_cast<void*>(logits + a.classes), 0,
              sizeof(T) * static_cast<size_t>(stride - a.classes));
}

void cross_entropy(Context& context, const CrossEntropy& a) {
  with_float_type(a.logits.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, a.logits.extent(0), grain_for(a.classes),
              [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                for (int64_t i = begin; i < end; ++i) row<decltype(tag)>(a, i);
              });
  });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

HWY_EXPORT(cross_entropy);

namespace cpu {

void cross_entropy(Context& context, const CrossEntropy& a) {
  const int32_t* targets = a.targets.data<int32_t>();
  for (int64_t row = 0; row < a.targets.extent(0); ++row) {
    require(-1 <= targets[row] && targets[row] < a.classes,
            "cross_entropy: the target of row {} is {}; it must be in [0, {}), or -1 to ignore the "
            "row",
            row, targets[row], a.classes);
  }
  HWY_DYNAMIC_DISPATCH(cross_entropy)(context, a);
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
