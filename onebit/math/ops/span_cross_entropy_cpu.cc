#include <algorithm>
#include <cmath>

#include "onebit/ground/base/error.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/ops/cross_entropy.h"
#include "onebit/math/ops/span_cross_entropy.h"

namespace onebit::ops::cpu {

using namespace kernels;

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
// numbers
// per token: plain loops in f64.
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
      const int64_t first = starts[static_cast<size_t>(sequence)];
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

}  // namespace onebit::ops::cpu
