// The classifiers of all families against their classes in transformers.
#include <gtest/gtest.h>

#include "onebit/apps/classify/classification_model.h"
#include "tests/model/family_golden.h"

namespace onebit::classify {
namespace {

class FamilyOfClassifiers : public ::testing::TestWithParam<std::string> {};

TEST_P(FamilyOfClassifiers, HasTheLogitsAndGradientsOfTransformers) {
  model::FamilyGolden golden(GetParam(), "sequence");
  Context context = Context::cpu(2);
  ParameterTable table;
  ClassificationModel model(golden.config(), {.outputs = 3, .dropout = 0}, table);
  model.plan(context, golden.batch().limits(), {}, true);
  const model::DeviceBatch batch = golden.batch().view_of_classes();
  const double weight = 1.0 / static_cast<double>(batch.sequences());
  const auto loss = [&] {
    return weight * model.forward_backward(context, batch, weight, {.dropout_seed = 1}).loss_sum;
  };
  const auto outputs = [&] { return model::every(model.predict(context, batch), 1); };
  golden.compare(table, outputs, loss);
}

INSTANTIATE_TEST_SUITE_P(Model, FamilyOfClassifiers,
                         ::testing::ValuesIn(model::families_with("sequence")),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace onebit::classify
