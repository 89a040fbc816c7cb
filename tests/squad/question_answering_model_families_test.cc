// The answers of all families against their classes in transformers.
#include <gtest/gtest.h>

#include "onebit/apps/squad/question_answering_model.h"
#include "tests/model/family_golden.h"

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

}  // namespace
}  // namespace onebit::squad
