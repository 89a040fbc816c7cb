#include "onebit/model/encoder_layer.h"

#include <cmath>

#include "onebit/ops/residual_norm.h"

namespace onebit::model {
namespace {

std::string layer_name(int64_t index) {
  return fmt::format("bert.encoder.layer.{}", index);
}

std::string attention_norm_name(const BertConfig& config, int64_t index) {
  return layer_name(index) +
         (config.pre_layer_norm ? ".PostAttentionLayerNorm" : ".attention.output.LayerNorm");
}

std::string output_norm_name(const BertConfig& config, int64_t index) {
  if (!config.pre_layer_norm) return layer_name(index) + ".output.LayerNorm";
  const bool last = index + 1 == config.layers;
  return last ? "bert.encoder.FinalLayerNorm" : layer_name(index + 1) + ".PreAttentionLayerNorm";
}

double residual_stddev(const BertConfig& config) {
  const double layers = static_cast<double>(config.layers);
  return config.residual_scaled_init ? config.initializer_range / std::sqrt(2 * layers)
                                     : config.initializer_range;
}

}  // namespace

EncoderLayer::EncoderLayer(const BertConfig& config, params::Table& table, int64_t index)
    : config_(config), table_(&table), index_(index) {
  const std::string name = layer_name(index);
  const int64_t hidden = config.hidden_size, wide = config.intermediate_size;
  const double stddev = config.initializer_range;
  qkv_ = declare_linear(table, name + ".attention.self", 3 * hidden, hidden, stddev,
                        {"query", "key", "value"});
  attention_output_ = declare_linear(table, name + ".attention.output.dense", hidden, hidden,
                                     residual_stddev(config));
  attention_norm_ = declare_norm(table, attention_norm_name(config, index), hidden);
  intermediate_ = declare_linear(table, name + ".intermediate.dense", wide, hidden, stddev);
  output_ = declare_linear(table, name + ".output.dense", hidden, wide, residual_stddev(config));
  output_norm_ = declare_norm(table, output_norm_name(config, index), hidden);

  const auto begin_of = [&](int parameter) {
    return table.parameters()[static_cast<size_t>(parameter)].range.begin;
  };
  attention_range_ = {begin_of(qkv_.weight), begin_of(intermediate_.weight)};
  feed_forward_range_ = {begin_of(intermediate_.weight), table.size_elements()};
}

ops::Dropout EncoderLayer::dropout(const LayerPass& pass, DropoutPlace place) const {
  if (pass.training == nullptr) return {};
  const bool attention = place == DropoutPlace::kAttentionProbabilities;
  const bool all_rows = attention || pass.kept_rows.empty();
  return {.probability =
              static_cast<float>(attention ? config_.attention_dropout : config_.hidden_dropout),
          .seed = pass.training->dropout_seed,
          .site = dropout_site(index_, place),
          .row_keys = all_rows ? pass.batch->row_keys
                               : rows_of(pass.scratch->kept_row_keys, pass.kept_count)};
}

View EncoderLayer::running_sum(const LayerPass& pass) const {
  return pass.kept_rows.empty() ? rows_of(pass.scratch->residual, pass.kept_count)
                                : rows_of(pass.scratch->kept_residual, pass.kept_count);
}

View EncoderLayer::residual_after(const LayerPass& pass, const NormBuffers& norm) const {
  if (!config_.pre_layer_norm) return rows_of(norm.y, pass.kept_count);
  return norm.sum.empty() ? running_sum(pass) : rows_of(norm.sum, pass.kept_count);
}

View EncoderLayer::branch_of(const LayerPass& pass, const NormBuffers& norm) const {
  return rows_of(norm.sum.empty() ? pass.scratch->branch : norm.sum, pass.kept_count);
}

void EncoderLayer::add_and_norm(Context& context, const LayerPass& pass, DropoutPlace place,
                                ConstView residual, const NormBuffers& norm,
                                const NormParameters& parameters) const {
  const int64_t rows = pass.kept_count;
  View sum = rows_of(norm.sum, rows);
  if (norm.sum.empty() && config_.pre_layer_norm) sum = running_sum(pass);
  ops::residual_norm(context, {.residual = residual,
                               .x = branch_of(pass, norm),
                               .dropout = dropout(pass, place),
                               .gamma = table_->value(parameters.gamma),
                               .beta = table_->value(parameters.beta),
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
  const int64_t rows = pass.kept_count;
  const bool some = !pass.kept_rows.empty();
  const View grad_y = rows_of(some ? pass.scratch->kept_grad_y : pass.scratch->grad_y, rows);
  const View grad_residual =
      rows_of(some ? pass.scratch->kept_grad_residual : pass.scratch->grad_residual, rows);
  const ConstView extra = residual_gradient ? ConstView(grad_residual) : ConstView();
  const ops::Dropout drop = dropout(pass, place);
  const View grad_branch = drop.probability > 0 ? grad_y : View();
  ops::residual_norm_backward(context,
                              {.grad_y = grad_y,
                               .grad_y_extra = config_.pre_layer_norm ? ConstView() : extra,
                               .grad_sum_extra = config_.pre_layer_norm ? extra : ConstView(),
                               .sum = rows_of(norm.sum, rows),
                               .y = rows_of(norm.y, rows),
                               .gamma = table_->value(parameters.gamma),
                               .beta = table_->value(parameters.beta),
                               .mean = rows_of(norm.mean, rows),
                               .inverse_stddev = rows_of(norm.inverse_stddev, rows),
                               .dropout = drop,
                               .grad_residual = grad_residual,
                               .grad_x = grad_branch,
                               .grad_gamma = table_->gradient(parameters.gamma),
                               .grad_beta = table_->gradient(parameters.beta),
                               .grad_bias = table_->gradient(bias)});
  return grad_branch.empty() ? grad_residual : grad_branch;
}

void EncoderLayer::forward(Context& context, const LayerPass& pass) const {
  attention_forward(context, pass);
  feed_forward_forward(context, pass);
}

void EncoderLayer::backward(Context& context, const LayerPass& pass) const {
  feed_forward_backward(context, pass);
  if (pass.training->gradients_ready) pass.training->gradients_ready(feed_forward_range_);
  attention_backward(context, pass);
  if (pass.training->gradients_ready) pass.training->gradients_ready(attention_range_);
}

}  // namespace onebit::model
