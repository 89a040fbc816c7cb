// The taggers of all families against their classes in transformers.
#include <gtest/gtest.h>

#include "onebit/apps/tag/tagging_model.h"
#include "tests/model/family_golden.h"
#include "tests/model/family_pass.h"

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

using model::FamilyPasses;

// Passes in bf16 and on CUDA devices follow f32 on a CPU.
TEST_P(FamilyPasses, Tags) {
  has_few_labels_ = true;
  compare_with_f32(
      [](const model::EncoderConfig& config, ParameterTable& table) {
        return std::make_unique<TaggingModel>(config, TaggerHead{.outputs = 3, .dropout = 0.2},
                                              table);
      },
      [](model::TinyBatch& batch) { return batch.view_of_tags(); },
      [](TaggingModel& tagger, Context& context, const model::DeviceBatch& batch,
         model::PassOutcome& outcome) {
        outcome.loss = tagger.forward_backward(context, batch, 0.05, {.dropout_seed = 5}).loss_sum;
        append_outputs(outcome, tagger.predict(context, batch));
      });
}

INSTANTIATE_TEST_SUITE_P(Cpu, FamilyPasses, ::testing::ValuesIn(model::cpu_places()),
                         model::name_of_place);
INSTANTIATE_TEST_SUITE_P(Cuda, FamilyPasses, ::testing::ValuesIn(model::cuda_places()),
                         model::name_of_place);

}  // namespace
}  // namespace onebit::tag
