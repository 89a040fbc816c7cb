// A vocabulary of the size of XLM-R's: the head's logits exist for a few rows at a time.
#include "onebit/math/model/masked_lm_head.h"

#include <gtest/gtest.h>

#include <memory>

#include "onebit/math/device/memory.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/ops/elementwise.h"
#include "tests/model/cuda_pass.h"
#include "tests/model/small_family.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

// Only the order of sums over rows differs.
constexpr double kTolerance = 1e-5;

EncoderConfig wide_vocabulary() {
  EncoderConfig config = small_family("xlm-roberta");
  config.vocab_size = 250'002;
  config.hidden_size = 8;
  config.heads = 1;
  config.layers = 1;
  config.intermediate_size = 8;
  return config;
}

class LargeVocabulary : public ::testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    if (!on_cpu() && memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
    fill_by_name(drawn_table_, DType::kF32);
    table_.allocate(context().device(), DType::kF32);
    copy(table_.values(), drawn_table_.values());
  }

  bool on_cpu() const { return GetParam() == DeviceType::kCpu; }
  Context& context() {
    if (context_ == nullptr) {
      context_ = std::make_unique<Context>(on_cpu() ? Context::cpu(2) : Context::cuda(0));
    }
    return *context_;
  }

  // Adds the gradients of some sequences to the table's. Returns the sum of their losses.
  double pass(TinyBatch batch) {
    const Placed placed(context().device(), batch.view());
    return model_.forward_backward(context(), placed.batch(), {.masked_lm = 0.01}, {}).mlm_loss_sum;
  }

  Gradients take_gradients() {
    Gradients gradients;
    for (const ParameterEntry& entry : table_.entries()) {
      const Tensor one = to_cpu_f32(table_.gradient_of(entry));
      gradients[entry.name] = {one.data<float>(), one.data<float>() + one.shape().elements()};
    }
    ops::fill(context(), table_.gradients(), 0);
    return gradients;
  }

  EncoderConfig config_ = wide_vocabulary();
  ParameterTable drawn_table_, table_;
  PreTrainingModel drawn_{config_, drawn_table_, PreTrainingHeads::kMaskedWords};
  PreTrainingModel model_{config_, table_, PreTrainingHeads::kMaskedWords};
  std::unique_ptr<Context> context_;
};

TEST_P(LargeVocabulary, SeveralChunksAreTheSumOfTheirRows) {
  TinyBatch batch = random_batch(config_, {128, 128, 128, 128, 128, 128, 128, 128, 128}, 3);
  const auto masked = static_cast<int64_t>(batch.masked_rows.size());
  const int64_t chunk = MaskedLmHead::most_chunk_rows(context().device().type, DType::kF32,
                                                      config_.stored_vocab_size());
  ASSERT_GT(masked, chunk);
  const MemoryPlan reserved = model_.plan(context(), batch.limits(), {}, true);
  constexpr int64_t kMost = int64_t{260}
                            << 20;  // 256 MiB of logits, and what is in proportion to rows
  EXPECT_LE(reserved.bytes(MemoryKind::kHead), kMost);
  ops::fill(context(), table_.gradients(), 0);
  const double together = pass(batch);
  const Gradients expected = take_gradients();
  double sum = 0;
  for (int64_t sequence = 0; sequence < batch.sequences(); sequence += 3) {
    TinyBatch few = batch.part(sequence, sequence + 3);
    ASSERT_LE(static_cast<int64_t>(few.masked_rows.size()), chunk);
    sum += pass(few);
  }
  EXPECT_NEAR(together, sum, kTolerance * sum);
  expect_close(take_gradients(), expected, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Cpu, LargeVocabulary, ::testing::Values(DeviceType::kCpu));
INSTANTIATE_TEST_SUITE_P(Cuda, LargeVocabulary, ::testing::Values(DeviceType::kCuda));

}  // namespace
}  // namespace onebit::model
