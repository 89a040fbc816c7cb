// The taggers of all families against their classes in transformers.
#include <gtest/gtest.h>

#include "onebit/apps/tag/tagging_model.h"
#include "tests/model/family_golden.h"

namespace onebit::tag {
namespace {

class FamilyOfTaggers : public ::testing::TestWithParam<std::string> {};

TEST_P(FamilyOfTaggers, HasTheLogitsAndGradientsOfTransformers) {
  model::FamilyGolden golden(GetParam(), "tokens");
  Context context = Context::cpu(2);
  ParameterTable table;
  TaggingModel model(golden.config(), {.outputs = 5, .dropout = 0}, table);
  model.plan(context, golden.batch().limits(), {}, true);
  const model::DeviceBatch batch = golden.batch().view_of_tags();
  const double weight = 1.0 / static_cast<double>(golden.batch().tags.size());
  const auto loss = [&] {
    return weight * model.forward_backward(context, batch, weight, {.dropout_seed = 1}).loss_sum;
  };
  const auto outputs = [&] { return model::every(model.predict(context, batch), 1); };
  golden.compare(table, outputs, loss);
}

INSTANTIATE_TEST_SUITE_P(Model, FamilyOfTaggers,
                         ::testing::ValuesIn(model::families_with("tokens")),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace onebit::tag
