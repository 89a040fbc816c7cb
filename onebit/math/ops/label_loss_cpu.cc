#include <cmath>

#include "onebit/math/kernels/float_type.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/ops/label_loss.h"

namespace onebit::ops::cpu {

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

}  // namespace onebit::ops::cpu
