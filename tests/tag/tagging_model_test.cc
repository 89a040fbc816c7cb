#include "onebit/apps/tag/tagging_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "onebit/ground/base/json.h"
#include "onebit/math/model/config.h"
#include "tests/model/announced_gradients.h"
#include "tests/model/golden.h"
#include "tests/model/known_heads.h"
#include "tests/model/model_gradient.h"

namespace onebit::tag {
namespace {

using model::batch_from;
using model::expect_close;
using model::expect_known;
using model::fill_by_name;
using model::golden_folder;
using model::gradient_cases;
using model::gradients_of;
using model::GradientsAnnounced;
using model::ModelGradient;
using model::name_of_case;
using model::name_of_order;

TEST_P(ModelGradient, Tagging) {
  TaggingModel model(config_, {.outputs = 3}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_tags(), 0.25, pass());

  model::ReferenceBert reference(config_, table_);
  const double expected = reference.tagging(batch_, seed());
  EXPECT_NEAR(result.loss_sum, expected, tolerance_here() * expected);
  const auto unlabelled = std::count(batch_.tags.begin(), batch_.tags.end(), -1);
  EXPECT_GT(unlabelled, 0);
  EXPECT_EQ(result.words, static_cast<int64_t>(batch_.tags.size()) - unlabelled);
  compare(gradients_of(table_),
          reference.differences([&] { return 0.25 * reference.tagging(batch_, seed()); }));
}

INSTANTIATE_TEST_SUITE_P(Model, ModelGradient, gradient_cases(), name_of_case);

TEST_P(GradientsAnnounced, ByTagging) {
  TaggingModel model(config_, {.outputs = 3}, table_);
  check_passes_of(model, 1, batch_.view_of_tags());
}

INSTANTIATE_TEST_SUITE_P(Model, GradientsAnnounced, ::testing::Bool(), name_of_order);

TEST(HuggingFaceTagger, LogitsLossAndGradient) {
  const Json golden = read_json(golden_folder() / "tagging.json");
  Keys section(golden.at("config"), "tagging.json", "config");
  const model::EncoderConfig config = model::read_config(section, 0);
  model::TinyBatch batch = batch_from(golden.at("batch"));
  batch.tagged_rows = golden.at("tagged_rows").get<std::vector<int32_t>>();
  batch.tags = golden.at("tags").get<std::vector<int32_t>>();
  Context context = Context::cpu(2);
  ParameterTable table;
  TaggingModel model(config, {.outputs = 5}, table);
  fill_by_name(table, DType::kF32);
  model.plan(context, batch.limits(), {}, true);
  const Tensor logits = model.predict(context, batch.view_of_tags());
  ASSERT_EQ(logits.view().elements(), static_cast<int64_t>(golden.at("logits").size()));
  for (size_t i = 0; i < golden.at("logits").size(); ++i) {
    EXPECT_NEAR(logits.data<float>()[i], golden.at("logits")[i].get<double>(), 1e-5);
  }
  const double weight = 1.0 / static_cast<double>(batch.tags.size());
  const auto result = model.forward_backward(context, batch.view_of_tags(), weight, {});
  EXPECT_NEAR(weight * result.loss_sum, golden.at("loss").get<double>(), 1e-5);
  const model::Gradients gradients = gradients_of(table);
  for (const auto& [name, expected] : golden.at("gradients").items()) {
    expect_close({{name, gradients.at(name)}}, {{name, expected.get<std::vector<double>>()}}, 1e-4);
  }
}

TEST(TaggingModel, HasNoPooler) {
  const model::EncoderConfig config = model::preset("bert-tiny");
  ParameterTable encoder, tagging;
  const model::Bert bert(config, encoder);
  const TaggingModel model(config, {.outputs = 9}, tagging);
  const int64_t width = config.hidden_size + 1;
  EXPECT_EQ(tagging.parameter_count(), encoder.parameter_count() + 9 * width);
  EXPECT_EQ(tagging.entry("classifier.weight").shape, (Shape{9, config.hidden_size}));
  expect_known(tagging);
}

}  // namespace
}  // namespace onebit::tag
