#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/losses_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>

#include "onebit/ground/base/error.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_math_inl.h"
#include "onebit/math/ops/losses.h"

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

namespace cpu {

using namespace kernels;

namespace {

struct Term {
  double loss, gradient;
};

// log(1 + exp(x)) without overflow.
double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

Term sigmoid_term(double x, double target, double weight) {
  return {.loss = weight * target * softplus(-x) + (1 - target) * softplus(x),
          .gradient = (1 - target) * sigmoid(x) - weight * target * sigmoid(-x)};
}

Term squared_term(double x, double target) {
  return {.loss = (x - target) * (x - target), .gradient = 2 * (x - target)};
}

// There are only a few numbers per sequence: plain loops in f64.
template <typename T>
void row(const LabelLoss& a, int64_t index) {
  const int64_t columns = a.logits.extent(1);
  T* logits = a.logits.data<T>() + index * columns;
  const float* targets = a.targets.data<float>() + index * columns;
  const float* weights = a.positive_weights.data<float>();
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double x = double{static_cast<float>(logits[i])}, target = double{targets[i]};
    const double weight = weights == nullptr ? 1 : double{weights[i]};
    const Term term = a.kind == LabelLossKind::kSigmoid ? sigmoid_term(x, target, weight)
                                                        : squared_term(x, target);
    sum += term.loss;
    if (!a.write_gradient) continue;
    const double scale = double{a.gradient_scale} / static_cast<double>(columns);
    logits[i] = T(static_cast<float>(scale * term.gradient));
  }
  a.losses.data<float>()[index] = static_cast<float>(sum / static_cast<double>(columns));
}

}  // namespace

void label_loss(Context& context, const LabelLoss& a) {
  with_float_type(a.logits.dtype(), [&](auto tag) {
    for_parts(context, a.logits.extent(0), grain_for(a.logits.extent(1)),
              [&](int64_t, int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) row<decltype(tag)>(a, i);
              });
  });
}

namespace {

// The logits of one column over the rows of one sequence.
template <typename T>
struct Segment {
  T* first;
  int64_t stride, length;

  T& at(int64_t i) const { return first[i * stride]; }
  double value(int64_t i) const { return double{static_cast<float>(at(i))}; }
};

// Returns the loss and writes the gradient to the segment if requested. There are only a few
// numbers per token: plain loops in f64.
template <typename T>
float segment_loss(const Segment<T>& logits, int32_t target, bool write_gradient, float scale) {
  if (target == kIgnoredTarget) {
    if (write_gradient) {
      for (int64_t i = 0; i < logits.length; ++i) logits.at(i) = T(0.0f);
    }
    return 0;
  }
  double maximum = logits.value(0), sum = 0;
  for (int64_t i = 1; i < logits.length; ++i) maximum = std::max(maximum, logits.value(i));
  for (int64_t i = 0; i < logits.length; ++i) sum += std::exp(logits.value(i) - maximum);
  const double log_sum_exp = maximum + std::log(sum);
  const double loss = log_sum_exp - logits.value(target);
  if (write_gradient) {
    for (int64_t i = 0; i < logits.length; ++i) {
      const double probability = std::exp(logits.value(i) - log_sum_exp);
      logits.at(i) = T(static_cast<float>(scale * (probability - (i == target ? 1 : 0))));
    }
  }
  return static_cast<float>(loss);
}

template <typename T>
void run(Context& context, const SpanCrossEntropy& a) {
  const int64_t columns = a.logits.extent(1), batch = a.targets.extent(1);
  const auto starts = a.sequence_starts.host;
  for_parts(context, batch, 1, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t sequence = begin; sequence < end; ++sequence) {
      const int64_t first = starts[sequence];
      const int64_t length = starts[static_cast<size_t>(sequence) + 1] - first;
      for (int64_t column = 0; column < columns; ++column) {
        const Segment<T> logits{a.logits.data<T>() + first * columns + column, columns, length};
        const int64_t place = column * batch + sequence;
        a.losses.data<float>()[place] = segment_loss(logits, a.targets.data<int32_t>()[place],
                                                     a.write_gradient, a.gradient_scale);
      }
    }
  });
}

}  // namespace

void span_cross_entropy(Context& context, const SpanCrossEntropy& a) {
  const int64_t batch = a.targets.extent(1);
  const auto starts = a.sequence_starts.host;
  for (int64_t i = 0; i < a.targets.elements(); ++i) {
    const size_t sequence = static_cast<size_t>(i % batch);
    const int32_t length = starts[sequence + 1] - starts[sequence];
    const int32_t target = a.targets.data<int32_t>()[i];
    require(
        -1 <= target && target < length,
        "span_cross_entropy: target {} of sequence {} in column {} is outside its {} tokens; use "
        "-1 to ignore it",
        target, sequence, i / batch, length);
  }
  switch (a.logits.dtype()) {
    case DType::kF32:
      return run<float>(context, a);
    case DType::kBF16:
      return run<bf16>(context, a);
    default:
      return run<f16>(context, a);
  }
}

}  // namespace cpu

}  // namespace onebit::ops
#endif
