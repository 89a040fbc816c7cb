// "A step allocates nothing": every operation called again with the same shapes, or smaller ones.
#include <gtest/gtest.h>

#include "onebit/math/attention/attention.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/embedding.h"
#include "onebit/math/ops/layer_norm.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/losses.h"
#include "onebit/math/ops/reduce.h"
#include "onebit/math/ops/rotary.h"
#include "onebit/math/ops/rows.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/math/updates/lamb_update.h"

namespace onebit::ops {
namespace {

// The operations of a small layer on `rows` rows of its buffers.
class Layer {
 public:
  explicit Layer(DType type) : type_(type) {
    for (int64_t row = 0; row < kRows; ++row) {
      keys_.data<uint64_t>()[row] = static_cast<uint64_t>(row);
      ids_.data<int32_t>()[row] = static_cast<int32_t>(row % 7);
      indices_.data<int32_t>()[row] = static_cast<int32_t>(row);
    }
  }

  void step(int64_t rows) {
    const int32_t starts[] = {0, static_cast<int32_t>(rows / 3), static_cast<int32_t>(rows)};
    const SequenceStarts sequences{ConstView::of(starts, {3}), starts};
    const kernels::Dropout drop{
        .probability = 0.1f, .seed = 1, .site = 2, .row_keys = keys_.first_rows(rows)};
    const View x = x_.first_rows(rows), y = y_.first_rows(rows), qkv = qkv_.first_rows(rows);
    const View mean = mean_.first_rows(rows), inverse = inverse_.first_rows(rows);
    const View grad_qkv = grad_qkv_.first_rows(rows), sum = sum_.first_rows(rows);
    const View ids = ids_.first_rows(rows);
    const View log_sum_exp = log_sum_exp_.view().rows(0, 2 * rows).reshaped({2, rows});
    embedding(context_, {.tokens = ids,
                         .positions = ids,
                         .segments = ids,
                         .word = table_.view(),
                         .position = table_.view(),
                         .segment = table_.view(),
                         .gamma = gamma_.view(),
                         .beta = gamma_.view(),
                         .dropout = drop,
                         .y = x,
                         .mean = mean,
                         .inverse_stddev = inverse});
    linear(context_, {.x = x, .weight = weight_.view(), .bias = bias_.view(), .y = qkv});
    rotary(context_, {.positions = ids, .turns = turns_.view(), .heads = 2, .qkv = qkv});
    attention(context_, {.qkv = qkv,
                         .sequence_starts = sequences,
                         .heads = 2,
                         .window = 9,
                         .score_bias = score_bias_.view(),
                         .dropout = drop,
                         .context = y,
                         .log_sum_exp = log_sum_exp});
    residual_norm(context_, {.residual = x,
                             .x = y,
                             .dropout = drop,
                             .gamma = gamma_.view(),
                             .beta = gamma_.view(),
                             .sum = sum,
                             .y = y,
                             .mean = mean,
                             .inverse_stddev = inverse});
    residual_norm_backward(context_, {.grad_y = y,
                                      .grad_y_extra = {},
                                      .grad_sum_extra = {},
                                      .sum = sum,
                                      .y = {},
                                      .gamma = gamma_.view(),
                                      .beta = {},
                                      .mean = mean,
                                      .inverse_stddev = inverse,
                                      .dropout = drop,
                                      .grad_residual = x,
                                      .grad_x = y,
                                      .grad_gamma = gradient_.view(),
                                      .grad_beta = gradient_.view(),
                                      .grad_bias = gradient_.view()});
    attention_backward(context_, {.grad_context = x,
                                  .qkv = qkv,
                                  .context = y,
                                  .log_sum_exp = log_sum_exp,
                                  .sequence_starts = sequences,
                                  .heads = 2,
                                  .window = 9,
                                  .score_bias = score_bias_.view(),
                                  .dropout = drop,
                                  .grad_qkv = grad_qkv,
                                  .grad_bias = grad_bias_.view(),
                                  .grad_score_bias = score_bias_.view()});
    const View halves = qkv.reshaped({3 * rows, kHidden}), half = half_.first_rows(3 * rows);
    gated_activation(context_, {.kind = ActivationKind::kSwish, .x = halves, .y = half});
    gated_activation_backward(context_, {.kind = ActivationKind::kSwish,
                                         .grad_y = half,
                                         .x = halves,
                                         .grad_x = halves,
                                         .grad_bias = gradient_.view()});
    layer_norm(context_, {.kind = NormKind::kRms,
                          .x = x,
                          .gamma = gamma_.view(),
                          .beta = {},
                          .y = x,
                          .mean = {},
                          .inverse_stddev = inverse});
    layer_norm_backward(context_, {.kind = NormKind::kRms,
                                   .grad_y = y,
                                   .x = {},
                                   .y = x,
                                   .gamma = gamma_.view(),
                                   .beta = {},
                                   .mean = {},
                                   .inverse_stddev = inverse,
                                   .grad_x = y,
                                   .grad_gamma = gradient_.view(),
                                   .grad_beta = {}});
    activation_backward(context_, {.kind = ActivationKind::kGeluErf,
                                   .grad_y = grad_qkv,
                                   .saved = qkv,
                                   .grad_x = grad_qkv,
                                   .grad_bias = grad_bias_.view()});
    linear_backward_input(context_,
                          {.grad_y = grad_qkv, .weight = weight_.view(), .grad_x = y, .add = true});
    linear_backward_weight(context_, {.grad_y = grad_qkv,
                                      .x = x,
                                      .grad_weight = grad_weight_.view(),
                                      .grad_bias = grad_bias_.view()});
    scatter_add_rows(context_, {.x = x, .indices = indices_.first_rows(rows), .y = y});
    embedding_backward(context_, {.grad_y = x,
                                  .tokens = ids,
                                  .positions = ids,
                                  .segments = ids,
                                  .word = table_.view(),
                                  .position = table_.view(),
                                  .segment = table_.view(),
                                  .gamma = gamma_.view(),
                                  .mean = mean,
                                  .inverse_stddev = inverse,
                                  .dropout = drop,
                                  .grad_word = grad_table_.view(),
                                  .grad_position = grad_table_.view(),
                                  .grad_segment = grad_table_.view(),
                                  .grad_gamma = gradient_.view(),
                                  .grad_beta = gradient_.view()});
    squared_norm(context_, grad_weight_.view());
    const auto slice = [&](int64_t index) {
      return log_sum_exp_.view().rows(rows / 2 * index, rows / 2 * (index + 1));
    };
    const updates::LambTensor tensors[] = {{0, 1, 0, 0.01}, {1, rows / 2, 1, 0}};
    updates::lamb_update(context_, {.value = slice(0),
                                    .compute_value = {},
                                    .gradient = slice(1),
                                    .momentum = slice(2),
                                    .variance = slice(3),
                                    .ratio = mean_.view().rows(0, 2),
                                    .tensors = tensors});
    label_loss(context_, {.kind = LabelLossKind::kSigmoid,
                          .logits = x,
                          .targets = targets_.first_rows(rows),
                          .positive_weights = {},
                          .write_gradient = true,
                          .gradient_scale = 1,
                          .losses = mean});
    const View means = means_.view();
    sequence_mean(context_, {.x = x, .sequence_starts = sequences, .y = means});
    sequence_mean_backward(context_, {.grad_y = means, .sequence_starts = sequences, .grad_x = x});
  }

 private:
  static constexpr int64_t kRows = 90, kHidden = 24;

  Tensor activations(int64_t columns) const { return Tensor::zeros({}, type_, {kRows, columns}); }
  static Tensor parameters(Shape shape) { return Tensor::zeros({}, DType::kF32, shape); }

  Context context_ = Context::cpu(2);
  DType type_;
  Tensor x_ = activations(kHidden), y_ = activations(kHidden), sum_ = activations(kHidden);
  Tensor qkv_ = activations(3 * kHidden), grad_qkv_ = activations(3 * kHidden);
  Tensor weight_ = Tensor::zeros({}, type_, {3 * kHidden, kHidden});
  Tensor table_ = parameters({7, kHidden}), grad_table_ = parameters({7, kHidden});
  Tensor gamma_ = parameters({kHidden}), gradient_ = parameters({kHidden});
  Tensor bias_ = parameters({3 * kHidden}), grad_bias_ = parameters({3 * kHidden});
  Tensor grad_weight_ = parameters({3 * kHidden, kHidden});
  Tensor mean_ = parameters({kRows}), inverse_ = parameters({kRows});
  Tensor turns_ = rotary_turns({}, 10000, 7, kHidden / 2);
  Tensor half_ = Tensor::zeros({}, type_, {3 * kRows, kHidden / 2});
  Tensor score_bias_ = parameters({2, 2 * kRows + 1});
  Tensor means_ = parameters({2, kHidden});
  Tensor log_sum_exp_ = parameters({2 * kRows});
  Tensor targets_ = parameters({kRows, kHidden});
  Tensor keys_ = Tensor::zeros({}, DType::kU64, {kRows});
  Tensor ids_ = Tensor::zeros({}, DType::kI32, {kRows});
  Tensor indices_ = Tensor::zeros({}, DType::kI32, {kRows});
};

TEST(Allocation, RepeatedCallsReserveNoBuffers) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    Layer layer(type);
    layer.step(90);
    const int64_t before = memory::allocation_count();
    layer.step(90);
    layer.step(61);
    EXPECT_EQ(memory::allocation_count(), before) << name_of(type);
  }
}

}  // namespace
}  // namespace onebit::ops
