// The answers of all families against their classes in transformers.
#include <gtest/gtest.h>

#include "onebit/apps/squad/question_answering_model.h"
#include "tests/model/family_golden.h"
#include "tests/model/family_pass.h"

namespace onebit::squad {
namespace {

class FamilyOfAnswers : public ::testing::TestWithParam<std::string> {};

TEST_P(FamilyOfAnswers, HasTheLogitsAndGradientsOfTransformers) {
  model::FamilyGolden golden(GetParam(), "span");
  Context context = Context::cpu(2);
  ParameterTable table;
  QuestionAnsweringModel model(golden.config(), table);
  model.plan(context, golden.batch().limits(), {}, true);
  const model::DeviceBatch batch = golden.batch().view_of_spans();
  const double weight = 1.0 / static_cast<double>(batch.sequences());
  const auto loss = [&] {
    return weight * model.forward_backward(context, batch, weight, {.dropout_seed = 1}).loss_sum;
  };
  const auto outputs = [&] { return model::every(model.predict(context, batch), 5); };
  golden.compare(table, outputs, loss);
}

INSTANTIATE_TEST_SUITE_P(Model, FamilyOfAnswers, ::testing::ValuesIn(model::families_with("span")),
                         [](const auto& tested) { return tested.param; });

using model::FamilyPasses;

// In bf16 and on CUDA devices. A shift common to all tokens changes no answer, so that the bias has
// no gradient.
TEST_P(FamilyPasses, Answers) {
  compare_with_f32(
      [](const model::EncoderConfig& config, ParameterTable& table) {
        return std::make_unique<QuestionAnsweringModel>(config, table, 0.2);
      },
      [](model::TinyBatch& batch) { return batch.view_of_spans(); },
      [](QuestionAnsweringModel& answerer, Context& context, const model::DeviceBatch& batch,
         model::PassOutcome& outcome) {
        outcome.loss = answerer.forward_backward(context, batch, 0.3, {.dropout_seed = 5}).loss_sum;
        append_outputs(outcome, answerer.predict(context, batch));
      },
      {"qa_outputs.bias"});
}

INSTANTIATE_TEST_SUITE_P(Cpu, FamilyPasses, ::testing::ValuesIn(model::cpu_places()),
                         model::name_of_place);
INSTANTIATE_TEST_SUITE_P(Cuda, FamilyPasses, ::testing::ValuesIn(model::cuda_places()),
                         model::name_of_place);

}  // namespace
}  // namespace onebit::squad
