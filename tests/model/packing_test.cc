// A sequence does not see its neighbours in the batch.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/math/model/pretraining_model.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

// Only the order of sums over rows differs: some ten roundings of f32.
constexpr double kTolerance = 2e-6;

class Packing : public ::testing::TestWithParam<bool> {
 protected:
  Packing() : config_(tiny_config(GetParam())) {
    config_.hidden_dropout = 0.15;
    config_.attention_dropout = 0.15;
    batch_ = random_batch(config_, {5, 2, 9, 4}, 11);
  }

  EncoderConfig config_;
  TinyBatch batch_;
  ParameterTable table_;
  Context context_ = Context::cpu(2);
};

TEST_P(Packing, OneBatchEqualsItsSequencesOneByOne) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  fill_by_name(table_, DType::kF32);
  model.plan(context_, batch_.limits(), {}, true);
  const PreTrainingModel::LossWeights weights{.masked_lm = 0.2, .next_sentence = 0.25};
  const TrainingPass pass{.dropout_seed = 1, .loss_scale = 1, .gradients_ready = {}};
  const auto together = model.forward_backward(context_, batch_.view(), weights, pass);
  const Gradients expected = gradients_of(table_);

  clear_gradients(table_);
  PreTrainingModel::Result sum;
  for (int64_t s = 0; s < batch_.sequences(); ++s) {
    TinyBatch alone = batch_.part(s, s + 1);
    sum += model.forward_backward(context_, alone.view(), weights, pass);
  }
  EXPECT_EQ(sum.masked, together.masked);
  EXPECT_EQ(sum.masked_correct, together.masked_correct);
  EXPECT_EQ(sum.nsp_correct, together.nsp_correct);
  EXPECT_NEAR(sum.mlm_loss_sum, together.mlm_loss_sum, kTolerance * together.mlm_loss_sum);
  EXPECT_NEAR(sum.nsp_loss_sum, together.nsp_loss_sum, kTolerance * together.nsp_loss_sum);
  expect_close(gradients_of(table_), expected, 5 * kTolerance);
}

TEST_P(Packing, EvaluationEqualsAPassWithoutDropout) {
  config_.hidden_dropout = 0;
  config_.attention_dropout = 0;
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  fill_by_name(table_, DType::kF32);
  model.plan(context_, batch_.limits(), {}, true);
  const auto trained = model.forward_backward(context_, batch_.view(), {}, {});
  const auto evaluated = model.evaluate(context_, batch_.view());
  EXPECT_EQ(evaluated.mlm_loss_sum, trained.mlm_loss_sum);
  EXPECT_EQ(evaluated.nsp_loss_sum, trained.nsp_loss_sum);

  model.plan(context_, batch_.limits(), {}, false);
  const auto planned_for_it = model.evaluate(context_, batch_.view());
  EXPECT_EQ(planned_for_it.mlm_loss_sum, trained.mlm_loss_sum);
  EXPECT_EQ(planned_for_it.nsp_loss_sum, trained.nsp_loss_sum);
  EXPECT_EQ(planned_for_it.masked_correct, trained.masked_correct);
}

TEST_P(Packing, ScoresOfMaskedRowsExplainTheLoss) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  fill_by_name(table_, DType::kF32);
  model.plan(context_, batch_.limits(), {}, false);
  const auto result = model.evaluate(context_, batch_.view());
  const Tensor scores = model.predict_masked(context_, batch_.view());
  ASSERT_EQ(scores.shape(), (Shape{result.masked, config_.vocab_size}));
  double loss = 0;
  for (int64_t item = 0; item < result.masked; ++item) {
    const float* row = scores.data<float>() + item * config_.vocab_size;
    double sum = 0;
    for (int64_t word = 0; word < config_.vocab_size; ++word) {
      sum += std::exp(static_cast<double>(row[word]));
    }
    const int32_t target = batch_.masked_targets[static_cast<size_t>(item)];
    loss += std::log(sum) - static_cast<double>(row[target]);
  }
  EXPECT_NEAR(loss, result.mlm_loss_sum, kTolerance * loss);
}

TEST_P(Packing, GradientsAreAddedAndScaled) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  fill_by_name(table_, DType::kF32);
  model.plan(context_, batch_.limits(), {}, true);
  const PreTrainingModel::LossWeights weights{.masked_lm = 0.2, .next_sentence = 0.25};
  const TrainingPass plain{.dropout_seed = 1, .loss_scale = 1, .gradients_ready = {}};
  model.forward_backward(context_, batch_.view(), weights, plain);
  Gradients expected = gradients_of(table_);
  for (auto& [name, values] : expected) {
    for (double& value : values) value *= 5;
  }
  const TrainingPass scaled{.dropout_seed = 1, .loss_scale = 4, .gradients_ready = {}};
  model.forward_backward(context_, batch_.view(), weights, scaled);
  expect_close(gradients_of(table_), expected, 5 * kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Model, Packing, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "PreLn" : "PostLn"; });

}  // namespace
}  // namespace onebit::model
