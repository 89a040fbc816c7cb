// The feed-forward half of an encoder layer, forward and backward.
#include "onebit/model/encoder_layer.h"
#include "onebit/ops/activation.h"
#include "onebit/ops/linear.h"

namespace onebit::model {

void EncoderLayer::feed_forward_forward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.kept_count;
  const LayerBuffers& saved = *pass.saved;
  const View pre_activation = rows_of(saved.pre_activation, rows);
  const View activated =
      rows_of(saved.activated.empty() ? pass.scratch->activated : saved.activated, rows);
  ops::linear_activation(context, {.kind = config_.activation,
                                   .x = rows_of(saved.attention_norm.y, rows),
                                   .weight = table_->compute_value(intermediate_.weight),
                                   .bias = table_->value(intermediate_.bias),
                                   .pre_activation = pre_activation,
                                   .y = activated});
  ops::linear(context, {.x = activated,
                        .weight = table_->compute_value(output_.weight),
                        .bias = table_->value(output_.bias),
                        .y = branch_of(pass, *pass.output)});
  add_and_norm(context, pass, DropoutPlace::kFeedForwardOutput,
               residual_after(pass, saved.attention_norm), *pass.output, output_norm_);
}

void EncoderLayer::feed_forward_backward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.kept_count;
  const LayerBuffers& saved = *pass.saved;
  const LayerScratch& scratch = *pass.scratch;
  const bool last = index_ + 1 == config_.layers;
  const ConstView grad_branch =
      add_and_norm_backward(context, pass, DropoutPlace::kFeedForwardOutput, *pass.output,
                            output_norm_, output_.bias, !last);
  const View pre_activation = rows_of(saved.pre_activation, rows);
  View activated = rows_of(saved.activated, rows);
  if (activated.empty()) {
    activated = rows_of(scratch.activated, rows);
    ops::activation(context, {.kind = config_.activation, .x = pre_activation, .y = activated});
  }
  ops::linear_backward_weight(
      context,
      {.grad_y = grad_branch, .x = activated, .grad_weight = table_->gradient(output_.weight)});
  const View grad_wide = matrix_of(scratch.grad_wide, rows, config_.intermediate_size);
  ops::linear_backward_activation(context, {.kind = config_.activation,
                                            .grad_y = grad_branch,
                                            .weight = table_->compute_value(output_.weight),
                                            .saved = pre_activation,
                                            .grad_x = grad_wide,
                                            .grad_bias = table_->gradient(intermediate_.bias)});
  ops::linear_backward_weight(context, {.grad_y = grad_wide,
                                        .x = rows_of(saved.attention_norm.y, rows),
                                        .grad_weight = table_->gradient(intermediate_.weight)});
  ops::linear_backward_input(
      context,
      {.grad_y = grad_wide,
       .weight = table_->compute_value(intermediate_.weight),
       .grad_x = rows_of(pass.kept_rows.empty() ? scratch.grad_y : scratch.kept_grad_y, rows)});
}

}  // namespace onebit::model
