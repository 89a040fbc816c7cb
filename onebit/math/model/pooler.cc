#include "onebit/math/model/pooler.h"

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/layer_norm.h"
#include "onebit/math/ops/linear.h"

namespace onebit::model {

Pooler::Pooler(const EncoderConfig& config, ParameterTable& table)
    : config_(config),
      table_(&table),
      activation_(kind_of(config.choices.sequence_activation)),
      dense_(declare_linear(table, "bert.pooler.dense", config.hidden_size, config.hidden_size,
                            config.initializer_range, config.choices.sequence_dense_bias)) {
  if (!config.choices.sequence_norm) return;
  norm_ =
      declare_norm(table, "bert.pooler.LayerNorm", config.hidden_size, config.choices.norm_bias);
}

void Pooler::reserve(MemoryPlan& memory, int64_t rows, bool training, DType compute) {
  const EncoderChoices& choices = config_.choices;
  const auto reserve_if = [&](bool is_needed) {
    return is_needed ? memory.reserve(MemoryKind::kHead, compute, {rows, config_.hidden_size})
                     : Tensor();
  };
  activated_ = reserve_if(true);
  pre_activation_ = reserve_if(activation_ != ops::ActivationKind::kTanh);
  dropped_ = reserve_if(training && choices.sequence_dropout_first);
  normed_ = reserve_if(choices.sequence_norm);
  mean_ = Tensor();
  inverse_stddev_ = Tensor();
  if (!training || !choices.sequence_norm) return;
  mean_ = memory.reserve(MemoryKind::kHead, DType::kF32, {rows});
  inverse_stddev_ = memory.reserve(MemoryKind::kHead, DType::kF32, {rows});
}

kernels::Dropout Pooler::first_dropout(kernels::Dropout dropout) const {
  if (!config_.choices.sequence_dropout_first) return {};
  dropout.site = dropout_site(0, DropoutPlace::kPooler);
  return dropout;
}

View Pooler::forward(Context& context, ConstView hidden, const kernels::Dropout& dropout) const {
  const PhaseSpan phase(context, kHeadsForward);
  const int64_t rows = hidden.extent(0);
  const kernels::Dropout first = first_dropout(dropout);
  if (first.probability > 0) {
    ops::dropout(context, {.x = hidden, .dropout = first, .y = rows_of(dropped_, rows)});
    hidden = rows_of(dropped_, rows);
  }
  const View activated = rows_of(activated_, rows);
  const View linear = pre_activation_.empty() ? activated : rows_of(pre_activation_, rows);
  ops::linear(context, {.x = hidden,
                        .weight = table_->compute_value(dense_.weight),
                        .bias = bias_to_add(context, *table_, dense_.bias),
                        .y = linear});
  ops::activation(context, {.kind = activation_, .x = linear, .y = activated});
  if (!config_.choices.sequence_norm) return activated;
  ops::layer_norm(context, {.kind = config_.choices.norm,
                            .x = activated,
                            .gamma = table_->value(norm_.gamma),
                            .beta = value_or_none(*table_, norm_.beta),
                            .epsilon = static_cast<float>(config_.layer_norm_eps),
                            .y = rows_of(normed_, rows),
                            .mean = rows_of(mean_, rows),
                            .inverse_stddev = rows_of(inverse_stddev_, rows)});
  return rows_of(normed_, rows);
}

void Pooler::backward(Context& context, ConstView hidden, View grad_pooled, View grad_hidden,
                      const kernels::Dropout& dropout) const {
  const PhaseSpan phase(context, kHeadsBackward);
  const int64_t rows = hidden.extent(0);
  const View activated = rows_of(activated_, rows);
  if (config_.choices.sequence_norm) {
    ops::layer_norm_backward(context, {.kind = config_.choices.norm,
                                       .grad_y = grad_pooled,
                                       .x = activated,
                                       .gamma = table_->value(norm_.gamma),
                                       .mean = rows_of(mean_, rows),
                                       .inverse_stddev = rows_of(inverse_stddev_, rows),
                                       .grad_x = grad_pooled,
                                       .grad_gamma = table_->gradient(norm_.gamma),
                                       .grad_beta = gradient_or_none(*table_, norm_.beta)});
  }
  const View saved = pre_activation_.empty() ? activated : rows_of(pre_activation_, rows);
  ops::activation_backward(context, {.kind = activation_,
                                     .grad_y = grad_pooled,
                                     .saved = saved,
                                     .grad_x = grad_pooled,
                                     .grad_bias = gradient_or_none(*table_, dense_.bias)});
  const kernels::Dropout first = first_dropout(dropout);
  const bool drops = first.probability > 0;
  ops::linear_backward_weight(context,
                              weight_gradient(*table_, dense_.weight, grad_pooled,
                                              drops ? ConstView(rows_of(dropped_, rows)) : hidden));
  ops::linear_backward_input(context, {.grad_y = grad_pooled,
                                       .weight = table_->compute_value(dense_.weight),
                                       .grad_x = grad_hidden});
  if (!drops) return;
  ops::dropout_backward(context, {.grad_y = grad_hidden, .dropout = first, .grad_x = grad_hidden});
}

}  // namespace onebit::model
