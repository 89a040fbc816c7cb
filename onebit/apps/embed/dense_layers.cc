#include "onebit/apps/embed/dense_layers.h"

#include <cmath>

#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/view.h"

namespace onebit::embed {
namespace {

using formats::DenseActivation;
using formats::DenseModule;

double softplus(double x) {
  constexpr double kLinearFrom = 20;  // as in torch
  return x > kLinearFrom ? x : std::log1p(std::exp(x));
}

double activated(DenseActivation activation, double x) {
  switch (activation) {
    case DenseActivation::kIdentity:
      return x;
    case DenseActivation::kTanh:
      return std::tanh(x);
    case DenseActivation::kRelu:
      return x < 0 ? 0 : x;
    case DenseActivation::kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case DenseActivation::kLeakyRelu:
      return x > 0 ? x : 0.01 * x;
    case DenseActivation::kElu:
      return x > 0 ? x : std::expm1(x);
    case DenseActivation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case DenseActivation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case DenseActivation::kSilu:
      return x / (1 + std::exp(-x));
    case DenseActivation::kMish:
      return x * std::tanh(softplus(x));
    case DenseActivation::kSoftplus:
      return softplus(x);
    case DenseActivation::kSoftsign:
      return x / (1 + std::abs(x));
  }
  return x;
}

ConstView view_of(const std::vector<float>& values, Shape shape) {
  return values.empty() ? ConstView() : ConstView::of(values.data(), shape);
}

std::vector<float> apply_layer(Context& context, const DenseModule& module,
                               const std::vector<float>& x) {
  const auto count = static_cast<int64_t>(x.size()) / module.inputs;
  std::vector<float> y(static_cast<size_t>(count * module.outputs));
  const Shape matrix{module.outputs, module.inputs}, shape{count, module.outputs};
  const ConstView rows = view_of(x, {count, module.inputs});
  ops::linear(context, {.x = rows,
                        .weight = view_of(module.weight, matrix),
                        .bias = view_of(module.bias, {module.outputs}),
                        .y = View::of(y.data(), shape)});
  std::vector<float> residual;
  if (!module.residual.empty()) {
    residual.resize(y.size());
    ops::linear(context, {.x = rows,
                          .weight = view_of(module.residual, matrix),
                          .bias = {},
                          .y = View::of(residual.data(), shape)});
  }
  const std::vector<float>& added = module.residual.empty() ? x : residual;
  for (size_t i = 0; i < y.size(); ++i) {
    double value = activated(module.activation, double{y[i]});
    if (module.has_residual) value += double{added[i]};
    y[i] = static_cast<float>(value);
  }
  return y;
}

}  // namespace

DenseLayers::DenseLayers(Context& context, const std::vector<DenseModule>& modules)
    : model_context_(context), modules_(modules) {
  if (!context.device().is_cpu()) host_ = Context::cpu(context.threads());
}

Context& DenseLayers::context() {
  return host_ ? *host_ : model_context_;
}

std::vector<float> DenseLayers::apply(std::vector<float> vectors) {
  if (vectors.empty()) return vectors;
  for (const DenseModule& module : modules_) vectors = apply_layer(context(), module, vectors);
  return vectors;
}

}  // namespace onebit::embed
