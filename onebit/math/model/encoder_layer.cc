#include "onebit/math/model/encoder_layer.h"

#include <cmath>

#include "onebit/math/attention/attention.h"
#include "onebit/math/device/constant_weights.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/layer_norm.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/rotary.h"
#include "onebit/math/ops/rows.h"

namespace onebit::model {
namespace {

std::string layer_name(int64_t index) {
  return fmt::format("bert.encoder.layer.{}", index);
}

std::string attention_norm_name(const EncoderConfig& config, int64_t index) {
  return layer_name(index) +
         (config.choices.norm_before ? ".PostAttentionLayerNorm" : ".attention.output.LayerNorm");
}

std::string output_norm_name(const EncoderConfig& config, int64_t index) {
  if (!config.choices.norm_before) return layer_name(index) + ".output.LayerNorm";
  const bool last = index + 1 == config.layers;
  return last ? "bert.encoder.FinalLayerNorm" : layer_name(index + 1) + ".PreAttentionLayerNorm";
}

double residual_stddev(const EncoderConfig& config) {
  const double layers = static_cast<double>(config.layers);
  return config.residual_scaled_init ? config.initializer_range / std::sqrt(2 * layers)
                                     : config.initializer_range;
}

// One call per list: a row may occur in several lists, but only once in each.
void gather(Context& context, std::span<const ConstView> lists, ConstView from, View to) {
  int64_t begin = 0;
  for (const ConstView& rows : lists) {
    const int64_t end = begin + rows.elements();
    ops::gather_rows(context, {.x = from, .indices = rows, .y = to.rows(begin, end)});
    begin = end;
  }
}

void scatter(Context& context, std::span<const ConstView> lists, ConstView from, View to) {
  ops::fill(context, to, 0);
  int64_t begin = 0;
  for (const ConstView& rows : lists) {
    const int64_t end = begin + rows.elements();
    ops::scatter_add_rows(context, {.x = from.rows(begin, end), .indices = rows, .y = to});
    begin = end;
  }
}

}  // namespace

EncoderLayer::EncoderLayer(const EncoderConfig& config, ParameterTable& table, int64_t index)
    : config_(config),
      table_(&table),
      index_(index),
      activation_(kind_of(config.choices.activation)) {
  const std::string name = layer_name(index);
  const int64_t hidden = config.hidden_size, wide = config.intermediate_size;
  const double stddev = config.initializer_range;
  const EncoderChoices& choices = config.choices;
  qkv_ = declare_linear(table, name + ".attention.self", 3 * hidden, hidden, stddev,
                        choices.qkv_bias, {"query", "key", "value"});
  attention_output_ = declare_linear(table, name + ".attention.output.dense", hidden, hidden,
                                     residual_stddev(config), choices.attention_output_bias);
  attention_norm_ =
      declare_norm(table, attention_norm_name(config, index), hidden, choices.norm_bias);
  intermediate_ = declare_linear(table, name + ".intermediate.dense", config.feed_in_size(), hidden,
                                 stddev, choices.feed_in_bias);
  output_ = declare_linear(table, name + ".output.dense", hidden, wide, residual_stddev(config),
                           choices.feed_out_bias);
  output_norm_ = declare_norm(table, output_norm_name(config, index), hidden, choices.norm_bias);

  const auto begin_of = [&](int parameter) { return table.parameters()[parameter].range.begin; };
  attention_range_ = {begin_of(qkv_.weight), begin_of(intermediate_.weight)};
  feed_forward_range_ = {begin_of(intermediate_.weight), table.size_elements()};
}

kernels::Dropout EncoderLayer::dropout(const LayerPass& pass, DropoutPlace place) const {
  if (pass.training == nullptr) return {};
  const bool attention = place == DropoutPlace::kAttentionProbabilities;
  const bool all_rows = attention || pass.output_rows.empty();
  return {.probability =
              static_cast<float>(attention ? config_.attention_dropout : config_.hidden_dropout),
          .seed = pass.training->dropout_seed,
          .site = dropout_site(index_, place),
          .row_keys = all_rows ? pass.batch->row_keys
                               : rows_of(pass.scratch->output_row_keys, pass.output_count)};
}

View EncoderLayer::running_sum(const LayerPass& pass) const {
  return pass.output_rows.empty() ? rows_of(pass.scratch->residual, pass.output_count)
                                  : rows_of(pass.scratch->output_residual, pass.output_count);
}

View EncoderLayer::residual_after(const LayerPass& pass, const NormBuffers& norm) const {
  if (!config_.choices.norm_before) return rows_of(norm.y, pass.output_count);
  return norm.sum.empty() ? running_sum(pass) : rows_of(norm.sum, pass.output_count);
}

View EncoderLayer::branch_of(const LayerPass& pass, const NormBuffers& norm) const {
  return rows_of(norm.sum.empty() ? pass.scratch->branch : norm.sum, pass.output_count);
}

void EncoderLayer::add_and_norm(Context& context, const LayerPass& pass, DropoutPlace place,
                                ConstView residual, const NormBuffers& norm,
                                const NormParameters& parameters) const {
  const int64_t rows = pass.output_count;
  View sum = rows_of(norm.sum, rows);
  if (norm.sum.empty() && config_.choices.norm_before) sum = running_sum(pass);
  ops::residual_norm(context, {.kind = config_.choices.norm,
                               .residual = residual,
                               .x = branch_of(pass, norm),
                               .dropout = dropout(pass, place),
                               .factor = pass.factor,
                               .gamma = table_->value(parameters.gamma),
                               .beta = value_or_none(*table_, parameters.beta),
                               .epsilon = static_cast<float>(config_.layer_norm_eps),
                               .sum = sum,
                               .y = rows_of(norm.y, rows),
                               .mean = rows_of(norm.mean, rows),
                               .inverse_stddev = rows_of(norm.inverse_stddev, rows)});
}

ConstView EncoderLayer::add_and_norm_backward(Context& context, const LayerPass& pass,
                                              DropoutPlace place, const NormBuffers& norm,
                                              const NormParameters& parameters, int bias,
                                              bool residual_gradient) const {
  const int64_t rows = pass.output_count;
  const bool only_output_rows = !pass.output_rows.empty();
  const View grad_y =
      rows_of(only_output_rows ? pass.scratch->output_grad_y : pass.scratch->grad_y, rows);
  const View grad_residual = rows_of(
      only_output_rows ? pass.scratch->output_grad_residual : pass.scratch->grad_residual, rows);
  const ConstView extra = residual_gradient ? ConstView(grad_residual) : ConstView();
  const kernels::Dropout drop = dropout(pass, place);
  const View grad_branch = drop.probability > 0 || pass.factor != 1 ? grad_y : View();
  ops::residual_norm_backward(context,
                              {.kind = config_.choices.norm,
                               .grad_y = grad_y,
                               .grad_y_extra = config_.choices.norm_before ? ConstView() : extra,
                               .grad_sum_extra = config_.choices.norm_before ? extra : ConstView(),
                               .sum = rows_of(norm.sum, rows),
                               .y = rows_of(norm.y, rows),
                               .gamma = table_->value(parameters.gamma),
                               .beta = value_or_none(*table_, parameters.beta),
                               .mean = rows_of(norm.mean, rows),
                               .inverse_stddev = rows_of(norm.inverse_stddev, rows),
                               .dropout = drop,
                               .factor = pass.factor,
                               .grad_residual = grad_residual,
                               .grad_x = grad_branch,
                               .grad_gamma = table_->gradient(parameters.gamma),
                               .grad_beta = gradient_or_none(*table_, parameters.beta),
                               .grad_bias = gradient_or_none(*table_, bias)});
  return grad_branch.empty() ? grad_residual : grad_branch;
}

int64_t EncoderLayer::kept_words(DeviceType device, DType dtype, int64_t longest) const {
  if (config_.attention_dropout == 0) return 0;
  return ops::attention_kept_words(device, dtype, config_.hidden_size / config_.heads, longest);
}

View EncoderLayer::kept_of(const LayerPass& pass) const {
  const Tensor& kept = pass.saved->kept;
  if (kept.empty() || pass.training == nullptr) return {};
  const int64_t rows = pass.batch->rows();
  const int64_t words = kept_words(kept.view().device().type, pass.saved->qkv.dtype(),
                                   pass.batch->sequence_starts.longest());
  return kept.first_rows(config_.heads * rows * words).reshaped({config_.heads, rows, words});
}

void EncoderLayer::rotate(Context& context, const LayerPass& pass, View qkv, bool back) const {
  const ConstView turns = pass.positions->turns(index_);
  if (turns.empty()) return;
  ops::rotary(context, {.positions = pass.batch->positions,
                        .turns = turns,
                        .heads = config_.heads,
                        .back = back,
                        .qkv = qkv});
}

void EncoderLayer::attention_forward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.batch->rows(), hidden = config_.hidden_size;
  const LayerBuffers& saved = *pass.saved;
  const View qkv = rows_of(saved.qkv, rows);
  View attention_output = rows_of(saved.context, rows);
  const ConstView qkv_weight = table_->compute_value(qkv_.weight);
  ops::linear(context, {.x = rows_of(pass.input->y, rows),
                        .weight = qkv_weight,
                        .bias = bias_to_add(context, *table_, qkv_.bias),
                        .y = qkv});
  rotate(context, pass, qkv, false);
  ops::attention(context, {.qkv = qkv,
                           .sequence_starts = pass.batch->sequence_starts,
                           .heads = config_.heads,
                           .window = pass.positions->window(index_),
                           .score_bias = pass.positions->score_bias(),
                           .dropout = dropout(pass, DropoutPlace::kAttentionProbabilities),
                           .context = attention_output,
                           .log_sum_exp = matrix_of(saved.log_sum_exp, config_.heads, rows),
                           .kept = kept_of(pass),
                           .rounds = is_quantised(context, qkv_weight.raw())});
  LayerPass whole = pass;
  whole.output_rows = {};
  whole.output_count = rows;
  const bool has_norm = index_ > 0 || config_.has_first_norm();
  View residual = has_norm ? residual_after(whole, *pass.input) : rows_of(pass.input->y, rows);
  if (!pass.output_rows.empty()) {
    const LayerScratch& scratch = *pass.scratch;
    const View output_context = rows_of(scratch.output_context, pass.output_count);
    gather(context, pass.output_rows, attention_output, output_context);
    const View output_residual = rows_of(scratch.output_residual, pass.output_count);
    gather(context, pass.output_rows, residual, output_residual);
    if (pass.training != nullptr && config_.hidden_dropout > 0) {
      gather(context, pass.output_rows, pass.batch->row_keys.reshaped({rows, 1}),
             rows_of(scratch.output_row_keys, pass.output_count).reshaped({pass.output_count, 1}));
    }
    attention_output = output_context;
    residual = output_residual;
  }
  ONEBIT_INVARIANT(attention_output.extent(1) == hidden);
  ops::linear(context, {.x = attention_output,
                        .weight = table_->compute_value(attention_output_.weight),
                        .bias = bias_to_add(context, *table_, attention_output_.bias),
                        .y = branch_of(pass, saved.attention_norm)});
  add_and_norm(context, pass, DropoutPlace::kAttentionOutput, residual, saved.attention_norm,
               attention_norm_);
}

void EncoderLayer::attention_backward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.batch->rows(), hidden = config_.hidden_size;
  const LayerBuffers& saved = *pass.saved;
  const LayerScratch& scratch = *pass.scratch;
  const bool only_output_rows = !pass.output_rows.empty();
  const ConstView grad_branch =
      add_and_norm_backward(context, pass, DropoutPlace::kAttentionOutput, saved.attention_norm,
                            attention_norm_, attention_output_.bias, true);
  ops::linear_backward_weight(
      context, weight_gradient(*table_, attention_output_.weight, grad_branch,
                               rows_of(only_output_rows ? scratch.output_context : saved.context,
                                       pass.output_count)));
  const View grad_context = rows_of(scratch.grad_context, rows);
  const View grad_attention_output =
      only_output_rows ? rows_of(scratch.output_grad_context, pass.output_count) : grad_context;
  ops::linear_backward_input(context, {.grad_y = grad_branch,
                                       .weight = table_->compute_value(attention_output_.weight),
                                       .grad_x = grad_attention_output});
  if (only_output_rows) {
    scatter(context, pass.output_rows, grad_attention_output, grad_context);
    scatter(context, pass.output_rows, rows_of(scratch.output_grad_residual, pass.output_count),
            rows_of(scratch.grad_residual, rows));
  }
  const View grad_qkv = matrix_of(scratch.grad_wide, rows, 3 * hidden);
  const View grad_bias = gradient_or_none(*table_, qkv_.bias);
  const bool is_rotated = !pass.positions->turns(index_).empty();
  ops::attention_backward(context,
                          {.grad_context = grad_context,
                           .qkv = rows_of(saved.qkv, rows),
                           .context = rows_of(saved.context, rows),
                           .log_sum_exp = matrix_of(saved.log_sum_exp, config_.heads, rows),
                           .kept = kept_of(pass),
                           .sequence_starts = pass.batch->sequence_starts,
                           .heads = config_.heads,
                           .window = pass.positions->window(index_),
                           .score_bias = pass.positions->score_bias(),
                           .dropout = dropout(pass, DropoutPlace::kAttentionProbabilities),
                           .grad_qkv = grad_qkv,
                           .grad_bias = is_rotated ? View() : grad_bias,
                           .grad_score_bias = pass.positions->grad_score_bias()});
  rotate(context, pass, grad_qkv, true);
  ops::linear_backward_weight(
      context, weight_gradient(*table_, qkv_.weight, grad_qkv, rows_of(pass.input->y, rows),
                               is_rotated ? grad_bias : View()));
  ops::linear_backward_input(context, {.grad_y = grad_qkv,
                                       .weight = table_->compute_value(qkv_.weight),
                                       .grad_x = rows_of(scratch.grad_y, rows)});
}

void EncoderLayer::activate(Context& context, ConstView x, View y) const {
  if (config_.choices.gated) {
    ops::gated_activation(context, {.kind = activation_, .x = x, .y = y});
  } else {
    ops::activation(context, {.kind = activation_, .x = x, .y = y});
  }
}

void EncoderLayer::feed_forward_forward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.output_count;
  const LayerBuffers& saved = *pass.saved;
  const View pre_activation = rows_of(saved.pre_activation, rows);
  const View activated =
      rows_of(saved.activated.empty() ? pass.scratch->activated : saved.activated, rows);
  const ConstView x = rows_of(saved.attention_norm.y, rows);
  const ConstView weight = table_->compute_value(intermediate_.weight);
  const ConstView bias = bias_to_add(context, *table_, intermediate_.bias);
  if (config_.choices.gated) {
    ops::linear(context, {.x = x, .weight = weight, .bias = bias, .y = pre_activation});
    activate(context, pre_activation, activated);
  } else {
    ops::linear_activation(context, {.kind = activation_,
                                     .x = x,
                                     .weight = weight,
                                     .bias = bias,
                                     .pre_activation = pre_activation,
                                     .y = activated});
  }
  ops::linear(context, {.x = activated,
                        .weight = table_->compute_value(output_.weight),
                        .bias = bias_to_add(context, *table_, output_.bias),
                        .y = branch_of(pass, *pass.output)});
  add_and_norm(context, pass, DropoutPlace::kFeedForwardOutput,
               residual_after(pass, saved.attention_norm), *pass.output, *pass.output_norm);
}

void EncoderLayer::feed_forward_backward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.output_count;
  const LayerBuffers& saved = *pass.saved;
  const LayerScratch& scratch = *pass.scratch;
  const ConstView grad_branch =
      add_and_norm_backward(context, pass, DropoutPlace::kFeedForwardOutput, *pass.output,
                            *pass.output_norm, output_.bias, !pass.last);
  const View pre_activation = rows_of(saved.pre_activation, rows);
  View activated = rows_of(saved.activated, rows);
  if (activated.empty()) {
    activated = rows_of(scratch.activated, rows);
    activate(context, pre_activation, activated);
  }
  ops::linear_backward_weight(context,
                              weight_gradient(*table_, output_.weight, grad_branch, activated));
  const View grad_wide = matrix_of(scratch.grad_wide, rows, config_.feed_in_size());
  // On CUDA devices the gradient of tanh-GELU is part of a product, after which the bias's would be
  // a pass of its own over grad_wide. The next product sums it for nothing.
  const bool sums_bias_later = !context.device().is_cpu() &&
                               activation_ == ops::ActivationKind::kGeluTanh &&
                               !config_.choices.gated;
  const View grad_bias = gradient_or_none(*table_, intermediate_.bias);
  const ConstView output_weight = table_->compute_value(output_.weight);
  if (config_.choices.gated) {  // nothing reads `activated` any more
    ops::linear_backward_input(
        context, {.grad_y = grad_branch, .weight = output_weight, .grad_x = activated});
    ops::gated_activation_backward(context, {.kind = activation_,
                                             .grad_y = activated,
                                             .x = pre_activation,
                                             .grad_x = grad_wide,
                                             .grad_bias = grad_bias});
  } else {
    ops::linear_backward_activation(context, {.kind = activation_,
                                              .grad_y = grad_branch,
                                              .weight = output_weight,
                                              .saved = pre_activation,
                                              .grad_x = grad_wide,
                                              .grad_bias = sums_bias_later ? View() : grad_bias});
  }
  ops::linear_backward_weight(context, weight_gradient(*table_, intermediate_.weight, grad_wide,
                                                       rows_of(saved.attention_norm.y, rows),
                                                       sums_bias_later ? grad_bias : View()));
  ops::linear_backward_input(
      context,
      {.grad_y = grad_wide,
       .weight = table_->compute_value(intermediate_.weight),
       .grad_x = rows_of(pass.output_rows.empty() ? scratch.grad_y : scratch.output_grad_y, rows)});
}

void EncoderLayer::forward(Context& context, const LayerPass& pass) const {
  attention_forward(context, pass);
  feed_forward_forward(context, pass);
}

void EncoderLayer::backward(Context& context, const LayerPass& pass) const {
  feed_forward_backward(context, pass);
  const GradientsReady& ready = pass.training->gradients_ready;
  if (ready) ready({feed_forward_range_.begin, pass.gradients_end});
  attention_backward(context, pass);
  if (ready) ready(attention_range_);
}

}  // namespace onebit::model
