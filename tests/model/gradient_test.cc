// Losses and gradients of pre-training. Other models are tested in their floors.
#include "onebit/math/model/pretraining_model.h"
#include "tests/model/model_gradient.h"

namespace onebit::model {
namespace {

TEST_P(ModelGradient, Pretraining) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const PreTrainingModel::LossWeights weights{.masked_lm = 0.3, .next_sentence = 0.7};
  const auto result = model.forward_backward(context_, batch_.view(), weights, pass());

  ReferenceBert reference(config_, table_);
  const auto expected = reference.pretraining(batch_, seed());
  EXPECT_NEAR(result.mlm_loss_sum, expected.masked_lm, tolerance_here() * expected.masked_lm);
  EXPECT_NEAR(result.nsp_loss_sum, expected.next_sentence,
              tolerance_here() * expected.next_sentence);
  EXPECT_EQ(result.masked, static_cast<int64_t>(batch_.masked_rows.size()));
  EXPECT_EQ(result.sequences, 3);
  compare(gradients_of(table_), reference.differences([&] {
    const auto loss = reference.pretraining(batch_, seed());
    return weights.masked_lm * loss.masked_lm + weights.next_sentence * loss.next_sentence;
  }));
}

TEST_P(ModelGradient, MaskedWordsAlone) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kMaskedWords);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  batch_.next_sentence.clear();
  const auto result = model.forward_backward(context_, batch_.view(), {.masked_lm = 0.3}, pass());

  ReferenceBert reference(config_, table_);
  const auto expected = reference.pretraining(batch_, seed());
  EXPECT_NEAR(result.mlm_loss_sum, expected.masked_lm, tolerance_here() * expected.masked_lm);
  EXPECT_EQ(result.nsp_loss_sum, 0);
  EXPECT_EQ(result.sequences, 0);
  EXPECT_EQ(result.masked, static_cast<int64_t>(batch_.masked_rows.size()));
  compare(gradients_of(table_), reference.differences([&] {
    return 0.3 * reference.pretraining(batch_, seed()).masked_lm;
  }));
}

INSTANTIATE_TEST_SUITE_P(Model, ModelGradient, gradient_cases(), name_of_case);

}  // namespace
}  // namespace onebit::model
