// Batches that do not fit the plan, and batches at its edges.
#include <gtest/gtest.h>

#include "onebit/math/model/pretraining_model.h"
#include "tests/base/message_of.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

class PlannedModel : public ::testing::Test {
 protected:
  PlannedModel() : config_(tiny_config(false)), model_(config_, table_, PreTrainingHeads::kBoth) {
    fill_by_name(table_, DType::kF32);
    batch_ = random_batch(config_, {5, 9}, 3);
  }

  EncoderConfig config_;
  ParameterTable table_;
  PreTrainingModel model_;
  TinyBatch batch_;
  Context context_ = Context::cpu(1);
};

TEST_F(PlannedModel, RefusesLargerBatches) {
  BatchLimits limits = batch_.limits();
  limits.rows -= 1;
  model_.plan(context_, limits, {}, true);
  EXPECT_EQ(message_of([&] { model_.evaluate(context_, batch_.view()); }),
            "a micro-batch has 14 tokens, but the model was planned for 13");
  limits = batch_.limits();
  limits.sequences = 1;
  model_.plan(context_, limits, {}, true);
  EXPECT_EQ(message_of([&] { model_.evaluate(context_, batch_.view()); }),
            "a micro-batch has 2 sequences, but the model was planned for 1");
  limits = batch_.limits();
  limits.longest -= 1;
  model_.plan(context_, limits, {}, true);
  EXPECT_EQ(
      message_of([&] {
        model_.forward_backward(context_, batch_.view(), {1, 1}, {});
      }),
      fmt::format("a micro-batch has a sequence of {} tokens, but the model was planned for {}",
                  limits.longest + 1, limits.longest));
  limits = batch_.limits();
  limits.labelled = 1;
  model_.plan(context_, limits, {}, true);
  EXPECT_EQ(message_of([&] { model_.predict_masked(context_, batch_.view()); }),
            fmt::format("a micro-batch has {} masked rows, but the model was planned for 1",
                        batch_.masked_rows.size()));
}

TEST_F(PlannedModel, RefusesToTrainWhenPlannedForEvaluation) {
  model_.plan(context_, batch_.limits(), {}, false);
  EXPECT_EQ(message_of([&] {
              model_.forward_backward(context_, batch_.view(), {1, 1}, {});
            }),
            "the model was planned for evaluation only; plan it for training");
}

TEST_F(PlannedModel, NamesTheTokenOutsideTheVocabulary) {
  model_.plan(context_, batch_.limits(), {}, true);
  batch_.tokens[6] = static_cast<int32_t>(config_.vocab_size);
  const std::string message = message_of([&] {
    model_.forward_backward(context_, batch_.view(), {1, 1}, {});
  });
  EXPECT_NE(message.find("19"), std::string::npos) << message;
}

TEST_F(PlannedModel, CountsNoUnlabelledItem) {
  model_.plan(context_, batch_.limits(), {}, true);
  batch_.next_sentence[0] = -1;
  batch_.masked_targets[0] = -1;
  const auto result = model_.forward_backward(context_, batch_.view(), {1, 1}, {});
  EXPECT_EQ(result.sequences, 1);
  EXPECT_EQ(result.masked, static_cast<int64_t>(batch_.masked_rows.size()) - 1);
}

TEST_F(PlannedModel, TrainsWithoutMaskedRows) {
  model_.plan(context_, batch_.limits(), {}, true);
  batch_.masked_rows.clear();
  batch_.masked_targets.clear();
  const auto result = model_.forward_backward(context_, batch_.view(), {1, 1}, {});
  EXPECT_EQ(result.masked, 0);
  EXPECT_EQ(result.mlm_loss_sum, 0);
  EXPECT_GT(norm_of(gradients_of(table_)["bert.pooler.dense.weight"]), 0);
  EXPECT_EQ(norm_of(gradients_of(table_)["cls.predictions.bias"]), 0);
}

TEST_F(PlannedModel, LearnsFromAMaskedFirstToken) {
  model_.plan(context_, batch_.limits(), {}, true);
  batch_.masked_rows[0] = 0;  // the row that next-sentence prediction reads too
  const auto one = model_.forward_backward(context_, batch_.view(), {1, 0}, {});
  const Gradients words = gradients_of(table_);
  clear_gradients(table_);
  model_.forward_backward(context_, batch_.view(), {0, 1}, {});
  Gradients sum = gradients_of(table_);
  for (auto& [name, values] : sum) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += words.at(name)[i];
  }
  clear_gradients(table_);
  const auto both = model_.forward_backward(context_, batch_.view(), {1, 1}, {});
  EXPECT_EQ(one.mlm_loss_sum, both.mlm_loss_sum);
  expect_close(gradients_of(table_), sum, 1e-5);
}

}  // namespace
}  // namespace onebit::model
