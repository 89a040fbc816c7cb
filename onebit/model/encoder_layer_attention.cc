// The attention half of an encoder layer, forward and backward.
#include "onebit/model/encoder_layer.h"
#include "onebit/ops/attention.h"
#include "onebit/ops/cast.h"
#include "onebit/ops/linear.h"
#include "onebit/ops/rows.h"

namespace onebit::model {
namespace {

// One call a list: the rows of different lists may be equal, those of one may not.
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

void EncoderLayer::attention_forward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.batch->rows(), hidden = config_.hidden_size;
  const LayerBuffers& saved = *pass.saved;
  const View qkv = rows_of(saved.qkv, rows);
  View mixed = rows_of(saved.context, rows);
  ops::linear(context, {.x = rows_of(pass.input->y, rows),
                        .weight = table_->compute_value(qkv_.weight),
                        .bias = table_->value(qkv_.bias),
                        .y = qkv});
  ops::attention(context, {.qkv = qkv,
                           .sequence_starts = pass.batch->sequence_starts,
                           .heads = config_.heads,
                           .dropout = dropout(pass, DropoutPlace::kAttentionProbabilities),
                           .context = mixed,
                           .log_sum_exp = matrix_of(saved.log_sum_exp, config_.heads, rows)});
  LayerPass whole = pass;
  whole.kept_rows = {};
  whole.kept_count = rows;
  View residual = residual_after(whole, *pass.input);
  if (!pass.kept_rows.empty()) {
    const LayerScratch& scratch = *pass.scratch;
    const View kept_mixed = rows_of(scratch.kept_context, pass.kept_count);
    gather(context, pass.kept_rows, mixed, kept_mixed);
    const View kept_residual = rows_of(scratch.kept_residual, pass.kept_count);
    gather(context, pass.kept_rows, residual, kept_residual);
    if (pass.training != nullptr && config_.hidden_dropout > 0) {
      gather(context, pass.kept_rows, pass.batch->row_keys.reshaped({rows, 1}),
             rows_of(scratch.kept_row_keys, pass.kept_count).reshaped({pass.kept_count, 1}));
    }
    mixed = kept_mixed;
    residual = kept_residual;
  }
  ONEBIT_INVARIANT(mixed.extent(1) == hidden);
  ops::linear(context, {.x = mixed,
                        .weight = table_->compute_value(attention_output_.weight),
                        .bias = table_->value(attention_output_.bias),
                        .y = branch_of(pass, saved.attention_norm)});
  add_and_norm(context, pass, DropoutPlace::kAttentionOutput, residual, saved.attention_norm,
               attention_norm_);
}

void EncoderLayer::attention_backward(Context& context, const LayerPass& pass) const {
  const int64_t rows = pass.batch->rows(), hidden = config_.hidden_size;
  const LayerBuffers& saved = *pass.saved;
  const LayerScratch& scratch = *pass.scratch;
  const bool some = !pass.kept_rows.empty();
  const ConstView grad_branch =
      add_and_norm_backward(context, pass, DropoutPlace::kAttentionOutput, saved.attention_norm,
                            attention_norm_, attention_output_.bias, true);
  ops::linear_backward_weight(
      context, {.grad_y = grad_branch,
                .x = rows_of(some ? scratch.kept_context : saved.context, pass.kept_count),
                .grad_weight = table_->gradient(attention_output_.weight)});
  const View grad_context = rows_of(scratch.grad_context, rows);
  const View grad_mixed = some ? rows_of(scratch.kept_grad_context, pass.kept_count) : grad_context;
  ops::linear_backward_input(context, {.grad_y = grad_branch,
                                       .weight = table_->compute_value(attention_output_.weight),
                                       .grad_x = grad_mixed});
  if (some) {
    scatter(context, pass.kept_rows, grad_mixed, grad_context);
    scatter(context, pass.kept_rows, rows_of(scratch.kept_grad_residual, pass.kept_count),
            rows_of(scratch.grad_residual, rows));
  }
  const View grad_qkv = matrix_of(scratch.grad_wide, rows, 3 * hidden);
  ops::attention_backward(context,
                          {.grad_context = grad_context,
                           .qkv = rows_of(saved.qkv, rows),
                           .context = rows_of(saved.context, rows),
                           .log_sum_exp = matrix_of(saved.log_sum_exp, config_.heads, rows),
                           .sequence_starts = pass.batch->sequence_starts,
                           .heads = config_.heads,
                           .dropout = dropout(pass, DropoutPlace::kAttentionProbabilities),
                           .grad_qkv = grad_qkv});
  ops::linear_backward_weight(context, {.grad_y = grad_qkv,
                                        .x = rows_of(pass.input->y, rows),
                                        .grad_weight = table_->gradient(qkv_.weight),
                                        .grad_bias = table_->gradient(qkv_.bias)});
  ops::linear_backward_input(context, {.grad_y = grad_qkv,
                                       .weight = table_->compute_value(qkv_.weight),
                                       .grad_x = rows_of(scratch.grad_y, rows)});
}

}  // namespace onebit::model
