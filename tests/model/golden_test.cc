// Compares with Hugging Face's BertForPreTraining, BertForSequenceClassification and
// BertForTokenClassification; tools/make_model_goldens.py wrote the expected values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/classification_model.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/model/tagging_model.h"
#include "tests/model/golden.h"
#include "tests/model/test_model.h"

namespace onebit::model {
namespace {

Gradients gradients_from(const Json& json, const std::string& activation) {
  const std::string bytes = read_file(golden_folder() / (activation + ".f32"));
  Gradients gradients;
  size_t at = 0;
  for (size_t tensor = 0; tensor < json.at("names").size(); ++tensor) {
    const auto elements = json.at("elements")[tensor].get<size_t>();
    std::vector<float> values(elements);
    EXPECT_LE(at + 4 * elements, bytes.size());
    std::memcpy(values.data(), bytes.data() + at, 4 * elements);
    at += 4 * elements;
    gradients[json.at("names")[tensor].get<std::string>()] = {values.begin(), values.end()};
  }
  EXPECT_EQ(at, bytes.size());
  return gradients;
}

class HuggingFace : public ::testing::TestWithParam<std::string> {
 protected:
  HuggingFace()
      : golden_(read_json(golden_folder() / "golden.json")), expected_(golden_.at(GetParam())) {
    Json shape = golden_.at("config");
    shape["hidden_act"] = GetParam();
    Keys section(shape, "golden.json", "config");
    config_ = read_config(section, 0);
    section.check();
    for (const Json& batch : golden_.at("batches")) batches_.push_back(batch_from(batch));
    for (const TinyBatch& batch : batches_) {
      const BatchLimits needed = batch.limits();
      limits_.rows = std::max(limits_.rows, needed.rows);
      limits_.sequences = std::max(limits_.sequences, needed.sequences);
      limits_.labelled = std::max(limits_.labelled, needed.labelled);
    }
  }

  double loss(PreTrainingModel& model, TinyBatch& batch) {
    const PreTrainingModel::LossWeights weights{
        .masked_lm = 1.0 / static_cast<double>(batch.masked_rows.size()),
        .next_sentence = 1.0 / static_cast<double>(batch.sequences())};
    const auto result = model.forward_backward(context_, batch.view(), weights, {});
    return weights.masked_lm * result.mlm_loss_sum + weights.next_sentence * result.nsp_loss_sum;
  }

  void compare_gradients(DType compute, double tolerance) {
    ParameterTable table;
    PreTrainingModel model(config_, table, PreTrainingHeads::kBoth);
    fill_by_name(table, compute);
    model.plan(context_, limits_, {}, true);
    const double expected = expected_.at("loss").get<double>();
    EXPECT_NEAR(loss(model, batches_[0]), expected, tolerance * expected);
    expect_close(gradients_of(table), gradients_from(expected_, GetParam()), tolerance);
  }

  Json golden_, expected_;
  BertConfig config_;
  std::vector<TinyBatch> batches_;
  BatchLimits limits_;
  Context context_ = Context::cpu(2);
};

TEST_P(HuggingFace, GradientsF32) {
  compare_gradients(DType::kF32, 1e-4);
}

TEST_P(HuggingFace, GradientsBf16) {
  compare_gradients(DType::kBF16, 2e-2);
}

struct ProblemType {
  const char* name;
  LabelKind kind;
};

class HuggingFaceClassifier : public ::testing::TestWithParam<ProblemType> {};

TEST_P(HuggingFaceClassifier, LogitsLossAndGradient) {
  const Json golden = read_json(golden_folder() / "classification.json");
  const Json& expected = golden.at("problems").at(GetParam().name);
  Keys section(golden.at("config"), "classification.json", "config");
  const BertConfig config = read_config(section, 0);
  TinyBatch batch = batch_from(golden.at("batch"));
  if (GetParam().kind == LabelKind::kClass) {
    batch.classes = expected.at("targets").get<std::vector<int32_t>>();
  } else {
    batch.label_values = expected.at("targets").get<std::vector<float>>();
  }
  Context context = Context::cpu(2);
  ParameterTable table;
  ClassificationModel model(config, {.outputs = 3, .kind = GetParam().kind}, table);
  fill_by_name(table, DType::kF32);
  model.plan(context, batch.limits(), {}, true);
  const Tensor logits = model.predict(context, batch.view_of_classes());
  ASSERT_EQ(logits.view().elements(), static_cast<int64_t>(golden.at("logits").size()));
  for (size_t i = 0; i < golden.at("logits").size(); ++i) {
    EXPECT_NEAR(logits.data<float>()[i], golden.at("logits")[i].get<double>(), 1e-5);
  }
  const double weight = 1.0 / static_cast<double>(batch.sequences());
  const DeviceBatch labelled =
      GetParam().kind == LabelKind::kClass ? batch.view_of_classes() : batch.view_of_values();
  const auto result = model.forward_backward(context, labelled, weight, {});
  EXPECT_NEAR(weight * result.loss_sum, expected.at("loss").get<double>(), 1e-5);
  expect_close({{"classifier.weight", gradients_of(table).at("classifier.weight")}},
               {{"classifier.weight", expected.at("gradient").get<std::vector<double>>()}}, 1e-4);
}

TEST(HuggingFaceTagger, LogitsLossAndGradient) {
  const Json golden = read_json(golden_folder() / "tagging.json");
  Keys section(golden.at("config"), "tagging.json", "config");
  const BertConfig config = read_config(section, 0);
  TinyBatch batch = batch_from(golden.at("batch"));
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
  const Gradients gradients = gradients_of(table);
  for (const auto& [name, expected] : golden.at("gradients").items()) {
    expect_close({{name, gradients.at(name)}}, {{name, expected.get<std::vector<double>>()}}, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Model, HuggingFaceClassifier,
    ::testing::Values(ProblemType{"single_label_classification", LabelKind::kClass},
                      ProblemType{"multi_label_classification", LabelKind::kLabels},
                      ProblemType{"regression", LabelKind::kValues}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Model, HuggingFace, ::testing::Values("gelu", "gelu_new"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace onebit::model
