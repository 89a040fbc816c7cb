// A model trained on a CUDA device and on a CPU from one seed has the same dropout masks and the
// same losses. Trained twice on a CUDA device it has the same bits.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "onebit/math/device/memory.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/updates/adam_update.h"
#include "tests/model/cuda_pass.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

constexpr size_t kSteps = 50, kStepsOfEachType = 5;

struct Trained {
  std::vector<double> losses;
  std::vector<float> values;
};

Trained train(Context& context, DType compute, size_t steps,
              ChosenActivation activation = ChosenActivation::kGeluErf,
              const MemoryOptions& memory = {}) {
  EncoderConfig config = small_config();
  config.choices.activation = config.choices.head_activation = activation;
  ParameterTable table;
  PreTrainingModel model(config, table, PreTrainingHeads::kBoth);
  table.allocate(context.device(), compute);
  table.initialize(11);
  if (compute != DType::kF32) {
    ops::cast(context, {.from = table.values(), .to = table.compute_values()});
  }
  const Shape flat{table.size_elements()};
  const Tensor momentum = Tensor::zeros(context.device(), DType::kF32, flat);
  const Tensor variance = Tensor::zeros(context.device(), DType::kF32, flat);
  const std::vector<updates::UpdateRange> ranges{{0, table.size_elements(), 0.01}};
  Trained trained;
  for (size_t step = 0; step < steps; ++step) {
    TinyBatch host = random_batch(config, {70, 128, 5, 33}, step);
    const Placed placed(context.device(), host.view());
    model.plan(context, host.limits(), memory, true);
    ops::fill(context, table.gradients(), 0.0f);
    const auto result = model.forward_backward(
        context, placed.batch(), {.masked_lm = 0.05, .next_sentence = 0.25}, {.dropout_seed = 5});
    trained.losses.push_back(0.05 * result.mlm_loss_sum + 0.25 * result.nsp_loss_sum);
    updates::adam_update(context,
                         {.value = table.values(),
                          .compute_value = compute == DType::kF32 ? View() : table.compute_values(),
                          .gradient = table.gradients(),
                          .momentum = momentum.view(),
                          .variance = variance.view(),
                          .ranges = ranges,
                          .learning_rate = 1e-4,
                          .epsilon = 1e-6});
  }
  const Tensor values = to_cpu_f32(table.values());
  trained.values.assign(values.data<float>(), values.data<float>() + table.size_elements());
  return trained;
}

TEST(CudaParity, LossesOfFiftyStepsAreTheCpus) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  Context cpu = Context::cpu(2), cuda = Context::cuda(0);
  const Trained expected = train(cpu, DType::kF32, kSteps), got = train(cuda, DType::kF32, kSteps);
  for (size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(got.losses[step], expected.losses[step], 1e-4 * expected.losses[step]) << step;
  }
}

// Bits of dropout from the forward pass, drawn again, and from a forward pass that runs again.
TEST(CudaParity, KeptBitsOfDropoutChangeNothing) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  Context cuda = Context::cuda(0);
  constexpr auto kGelu = ChosenActivation::kGeluErf;
  const Trained kept = train(cuda, DType::kBF16, kStepsOfEachType, kGelu);
  for (const MemoryOptions& options : {MemoryOptions{.attention_dropout_checkpoint = true},
                                       MemoryOptions{.full_recomputation = true}}) {
    const Trained other = train(cuda, DType::kBF16, kStepsOfEachType, kGelu, options);
    EXPECT_EQ(other.losses, kept.losses);
    EXPECT_EQ(other.values, kept.values);
  }
}

// The compute copy has the biases in the type that cuBLASLt adds.
TEST(CudaParity, NoPassRoundsBiases) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  Context cuda = Context::cuda(0);
  const auto pretraining = operations(
      cuda,
      [](const EncoderConfig& config, ParameterTable& table) {
        return PreTrainingModel(config, table, PreTrainingHeads::kBoth);
      },
      [&](PreTrainingModel& model, const DeviceBatch& batch) {
        model.forward_backward(cuda, batch, {.masked_lm = 1, .next_sentence = 1}, {});
      },
      &TinyBatch::view);
  EXPECT_GT(pretraining.at("matrix_product"), 0);
  EXPECT_EQ(pretraining.count("cast"), 0);
}

TEST(CudaParity, TwoRunsGiveTheSameBits) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  // Tanh-GELU is part of the product in 16-bit types.
  for (const auto activation : {ChosenActivation::kGeluErf, ops::ActivationKind::kGeluTanh}) {
    for (const DType compute : {DType::kF32, DType::kBF16, DType::kF16}) {
      Context first = Context::cuda(0), second = Context::cuda(0);
      const Trained one = train(first, compute, kStepsOfEachType, activation);
      const Trained other = train(second, compute, kStepsOfEachType, activation);
      EXPECT_EQ(one.losses, other.losses) << name_of(compute);
      EXPECT_EQ(one.values, other.values) << name_of(compute);
    }
  }
}

}  // namespace
}  // namespace onebit::model
