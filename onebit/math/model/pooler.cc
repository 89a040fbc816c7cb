#include "onebit/math/model/pooler.h"

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/linear.h"

namespace onebit::model {

Pooler::Pooler(const EncoderConfig& config, ParameterTable& table)
    : config_(config),
      table_(&table),
      dense_(declare_linear(table, "bert.pooler.dense", config.hidden_size, config.hidden_size,
                            config.initializer_range)) {}

void Pooler::reserve(MemoryPlan& memory, int64_t sequences, DType compute) {
  pooled_ = memory.reserve(MemoryKind::kHead, compute, {sequences, config_.hidden_size});
}

View Pooler::forward(Context& context, ConstView hidden) const {
  const PhaseSpan phase(context, kHeadsForward);
  const View pooled = rows_of(pooled_, hidden.extent(0));
  ops::linear(context, {.x = hidden,
                        .weight = table_->compute_value(dense_.weight),
                        .bias = bias_to_add(context, *table_, dense_.bias),
                        .y = pooled});
  ops::activation(context, {.kind = ops::ActivationKind::kTanh, .x = pooled, .y = pooled});
  return pooled;
}

void Pooler::backward(Context& context, ConstView hidden, View grad_pooled,
                      View grad_hidden) const {
  const PhaseSpan phase(context, kHeadsBackward);
  ops::activation_backward(context, {.kind = ops::ActivationKind::kTanh,
                                     .grad_y = grad_pooled,
                                     .saved = rows_of(pooled_, hidden.extent(0)),
                                     .grad_x = grad_pooled,
                                     .grad_bias = table_->gradient(dense_.bias)});
  ops::linear_backward_weight(context,
                              weight_gradient(*table_, dense_.weight, grad_pooled, hidden));
  ops::linear_backward_input(context, {.grad_y = grad_pooled,
                                       .weight = table_->compute_value(dense_.weight),
                                       .grad_x = grad_hidden});
}

}  // namespace onebit::model
