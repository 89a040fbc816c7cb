// The same source compiled for the baseline, which processors without AVX2 run.
#include <gtest/gtest.h>

#include <hwy/targets.h>
#include <cmath>
#include <vector>

#include "onebit/math/attention/attention.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/layer_norm.h"
#include "onebit/math/ops/losses.h"
#include "onebit/math/ops/reduce.h"
#include "onebit/math/ops/rotary.h"
#include "onebit/math/ops/rows.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/math/updates/lamb_update.h"

namespace onebit::ops {
namespace {

constexpr int64_t kRows = 21, kHidden = 36;

// Uses only the baseline while it lives.
class Baseline {
 public:
  explicit Baseline(bool wanted) {
    if (wanted) hwy::SetSupportedTargetsForTest(HWY_STATIC_TARGET);
  }
  ~Baseline() { hwy::SetSupportedTargetsForTest(0); }
};

Tensor numbers(DType dtype, Shape shape) {
  Tensor result(Device{}, dtype, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const float value = std::sin(static_cast<float>(i) * 0.7f) * 2;
    if (dtype == DType::kF32) result.data<float>()[i] = value;
    if (dtype == DType::kBF16) result.data<bf16>()[i] = bf16(value);
  }
  return result;
}

void append(std::vector<float>& all, const Tensor& x) {
  const Tensor wide = to_cpu_f32(x.view());
  all.insert(all.end(), wide.data<float>(), wide.data<float>() + wide.view().elements());
}

// Operations of encoders after BERT.
void run_later_ones(Context& context, DType dtype, const kernels::Dropout& drop,
                    std::vector<float>& all) {
  const Tensor x = numbers(dtype, {kRows, kHidden});
  const Tensor gated = Tensor::zeros({}, dtype, {kRows, kHidden / 2});
  gated_activation(context, {.kind = ActivationKind::kSwish, .x = x.view(), .y = gated.view()});
  append(all, gated);
  const Tensor turned = numbers(dtype, {kRows, kHidden});
  const Tensor positions = Tensor::zeros({}, DType::kI32, {kRows});
  for (int64_t row = 0; row < kRows; ++row) {
    positions.data<int32_t>()[row] = static_cast<int32_t>(row);
  }
  rotary(context, {.positions = positions.view(),
                   .turns = rotary_turns({}, 10000, kRows, kHidden / 3).view(),
                   .heads = 1,
                   .qkv = turned.view()});
  append(all, turned);
  const int32_t starts[] = {0, 4, 21};
  const Tensor context_rows = Tensor::zeros({}, dtype, {kRows, kHidden / 3});
  const Tensor score_bias = numbers(DType::kF32, {2, 33});
  attention(context, {.qkv = x.view(),
                      .sequence_starts = {ConstView::of(starts, {3}), starts},
                      .heads = 2,
                      .window = 3,
                      .score_bias = score_bias.view(),
                      .dropout = drop,
                      .context = context_rows.view(),
                      .log_sum_exp = {}});
  append(all, context_rows);
}

// One of each kind of loop. Returns all they wrote.
std::vector<float> run(DType dtype, bool baseline) {
  const Baseline chosen(baseline);
  Context context = Context::cpu(2);
  std::vector<float> all;
  const Tensor keys = Tensor::zeros({}, DType::kU64, {kRows});
  for (int64_t row = 0; row < kRows; ++row) keys.data<uint64_t>()[row] = 77u * uint64_t(row);
  const kernels::Dropout drop{.probability = 0.3f, .seed = 4, .site = 5, .row_keys = keys.view()};
  const Tensor x = numbers(dtype, {kRows, kHidden}), y = Tensor::zeros({}, dtype, {kRows, kHidden});
  dropout(context, {.x = x.view(), .dropout = drop, .y = y.view()});
  append(all, y);
  activation(context, {.kind = ActivationKind::kGeluErf, .x = x.view(), .y = y.view()});
  append(all, y);
  const Tensor gamma = numbers(DType::kF32, {kHidden});
  residual_norm(context, {.residual = x.view(),
                          .x = y.view(),
                          .dropout = drop,
                          .gamma = gamma.view(),
                          .beta = gamma.view(),
                          .sum = {},
                          .y = y.view(),
                          .mean = {},
                          .inverse_stddev = {}});
  append(all, y);
  const int32_t starts[] = {0, 4, 21};
  const Tensor context_rows = Tensor::zeros({}, dtype, {kRows, kHidden / 3});
  attention(context, {.qkv = x.view(),
                      .sequence_starts = {ConstView::of(starts, {3}), starts},
                      .heads = 2,
                      .dropout = drop,
                      .context = context_rows.view(),
                      .log_sum_exp = {}});
  append(all, context_rows);
  const SequenceStarts sequences{ConstView::of(starts, {3}), starts};
  const Tensor means = Tensor::zeros({}, DType::kF32, {2, kHidden});
  sequence_mean(context, {.x = x.view(), .sequence_starts = sequences, .y = means.view()});
  append(all, means);
  sequence_mean_backward(
      context, {.grad_y = means.view(), .sequence_starts = sequences, .grad_x = y.view()});
  append(all, y);
  const Tensor targets = Tensor::zeros({}, DType::kI32, {kRows});
  const Tensor losses = Tensor::zeros({}, DType::kF32, {kRows});
  cross_entropy(context, {.logits = y.view(),
                          .classes = kHidden - 1,
                          .targets = targets.view(),
                          .write_gradient = true,
                          .gradient_scale = 1,
                          .losses = losses.view(),
                          .correct = {}});
  append(all, y);
  append(all, losses);
  const Tensor sums = Tensor::zeros({}, DType::kF32, {kHidden});
  column_sum(context, {.x = x.view(), .sum = sums.view()});
  append(all, sums);
  const int64_t elements = kRows * kHidden;
  const Tensor value = numbers(DType::kF32, {elements}),
               gradient = numbers(DType::kF32, {elements});
  const Tensor momentum = Tensor::zeros({}, DType::kF32, {elements});
  const Tensor variance = Tensor::zeros({}, DType::kF32, {elements});
  const Tensor ratio = Tensor::zeros({}, DType::kF32, {2});
  const updates::LambTensor tensors[] = {{0, 101, 0, 0.01}, {101, elements, 1, 0}};
  updates::lamb_update(context, {.value = value.view(),
                                 .compute_value = {},
                                 .gradient = gradient.view(),
                                 .momentum = momentum.view(),
                                 .variance = variance.view(),
                                 .ratio = ratio.view(),
                                 .tensors = tensors,
                                 .learning_rate = 0.1});
  append(all, value);
  append(all, ratio);
  run_later_ones(context, dtype, drop, all);
  return all;
}

TEST(InstructionSet, BaselineAgrees) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<float> best = run(dtype, false), baseline = run(dtype, true);
    ASSERT_EQ(best.size(), baseline.size());
    // Sums of up to 36 numbers in another order. A bf16 result may round to the other neighbour.
    const float relative = dtype == DType::kF32 ? 64 * 0x1p-24f : 0x1p-7f;
    for (size_t i = 0; i < best.size(); ++i) {
      ASSERT_NEAR(best[i], baseline[i], relative * (std::abs(best[i]) + 4)) << i;
    }
  }
}

}  // namespace
}  // namespace onebit::ops
