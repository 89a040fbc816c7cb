#include "onebit/apps/classify/classification_model.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "onebit/ground/base/json.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/model/config.h"
#include "tests/model/announced_gradients.h"
#include "tests/model/cuda_pass.h"
#include "tests/model/golden.h"
#include "tests/model/known_heads.h"
#include "tests/model/model_gradient.h"
#include "tests/reference/label_loss.h"

namespace onebit::classify {
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
using model::operations;
using model::tiny_config;

TEST_P(ModelGradient, Classification) {
  ClassificationModel model(config_, {.outputs = 3}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_classes(), 0.25, pass());

  model::ReferenceBert reference(config_, table_);
  const double expected = reference.classification(batch_, seed());
  EXPECT_NEAR(result.loss_sum, expected, tolerance_here() * expected);
  EXPECT_EQ(result.sequences, 3);
  compare(gradients_of(table_),
          reference.differences([&] { return 0.25 * reference.classification(batch_, seed()); }));
}

TEST_P(ModelGradient, ClassificationWithWeights) {
  const std::vector<float> weights = {0.5f, 2, 0.75f};
  ClassificationModel model(config_, {.outputs = 3, .weights = weights}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_classes(), 0.25, pass());

  model::ReferenceBert reference(config_, table_);
  const auto loss = [&] {
    double sum = 0;
    for (int64_t s = 0; s < batch_.sequences(); ++s) {
      const model::TinyBatch one = batch_.part(s, s + 1);
      sum += double{weights[static_cast<size_t>(one.classes[0])]} *
             reference.classification(one, seed());
    }
    return sum;
  };
  EXPECT_NEAR(result.loss_sum, loss(), tolerance_here() * loss());
  compare(gradients_of(table_), reference.differences([&] { return 0.25 * loss(); }));
}

TEST_P(ModelGradient, ManyLabels) {
  const std::vector<float> weights = {0.5f, 2, 1};
  ClassificationModel model(
      config_, {.outputs = 3, .kind = model::LabelKind::kLabels, .weights = weights}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_values(), 0.25, pass());

  model::ReferenceBert reference(config_, table_);
  const auto loss = [&] {
    return reference.classification(batch_, seed(), [&](double x, double t, size_t i) {
      return reference::sigmoid_loss(x, t, double{weights[i]});
    });
  };
  EXPECT_NEAR(result.loss_sum, loss(), tolerance_here() * loss());
  EXPECT_EQ(result.sequences, 3);
  compare(gradients_of(table_), reference.differences([&] { return 0.25 * loss(); }));
}

TEST_P(ModelGradient, Values) {
  for (float& value : batch_.label_values) value = 3 * value - 1;
  ClassificationModel model(config_, {.outputs = 3, .kind = model::LabelKind::kValues}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_values(), 0.25, pass());

  model::ReferenceBert reference(config_, table_);
  const auto loss = [&] {
    return reference.classification(
        batch_, seed(), [](double x, double t, size_t) { return reference::squared_loss(x, t); });
  };
  EXPECT_NEAR(result.loss_sum, loss(), tolerance_here() * loss());
  compare(gradients_of(table_), reference.differences([&] { return 0.25 * loss(); }));
}

INSTANTIATE_TEST_SUITE_P(Model, ModelGradient, gradient_cases(), name_of_case);

TEST_P(GradientsAnnounced, ByClassification) {
  ClassificationModel model(config_, {.outputs = 3}, table_);
  check_passes_of(model, 1, batch_.view_of_classes());
}

INSTANTIATE_TEST_SUITE_P(Model, GradientsAnnounced, ::testing::Bool(), name_of_order);

struct ProblemType {
  const char* name;
  model::LabelKind kind;
};

class HuggingFaceClassifier : public ::testing::TestWithParam<ProblemType> {};

TEST_P(HuggingFaceClassifier, LogitsLossAndGradient) {
  const Json golden = read_json(golden_folder() / "classification.json");
  const Json& expected = golden.at("problems").at(GetParam().name);
  Keys section(golden.at("config"), "classification.json", "config");
  const model::EncoderConfig config = model::read_config(section, 0);
  model::TinyBatch batch = batch_from(golden.at("batch"));
  if (GetParam().kind == model::LabelKind::kClass) {
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
  const model::DeviceBatch labelled = GetParam().kind == model::LabelKind::kClass
                                          ? batch.view_of_classes()
                                          : batch.view_of_values();
  const auto result = model.forward_backward(context, labelled, weight, {});
  EXPECT_NEAR(weight * result.loss_sum, expected.at("loss").get<double>(), 1e-5);
  expect_close({{"classifier.weight", gradients_of(table).at("classifier.weight")}},
               {{"classifier.weight", expected.at("gradient").get<std::vector<double>>()}}, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Model, HuggingFaceClassifier,
    ::testing::Values(ProblemType{"single_label_classification", model::LabelKind::kClass},
                      ProblemType{"multi_label_classification", model::LabelKind::kLabels},
                      ProblemType{"regression", model::LabelKind::kValues}),
    [](const auto& tested) { return tested.param.name; });

TEST(ClassificationModel, HeadsHaveKnownNames) {
  ParameterTable table;
  const ClassificationModel model(tiny_config(true), {.outputs = 3}, table);
  expect_known(table);
}

// The compute copy has the biases in the type that cuBLASLt adds, which needs rows of a multiple of
// 16 bytes, such as those of eight labels.
std::map<std::string, int64_t> operations_with(Context& cuda, ChosenActivation activation) {
  return operations(
      cuda,
      [](const model::EncoderConfig& config, ParameterTable& table) {
        return ClassificationModel(config, {.outputs = 8}, table);
      },
      [&](ClassificationModel& model, const model::DeviceBatch& batch) {
        model.forward_backward(cuda, batch, 1, {});
      },
      &model::TinyBatch::view_of_classes, activation);
}

TEST(CudaClassification, NoPassRoundsBiases) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  Context cuda = Context::cuda(0);
  const auto calls = operations_with(cuda, ChosenActivation::kGeluErf);
  EXPECT_GT(calls.at("matrix_product"), 0);
  EXPECT_EQ(calls.count("cast"), 0);
}

// The gradient of tanh-GELU is part of a product, which leaves the bias's gradient to the next one.
TEST(CudaClassification, TanhGeluNeedsNoPassForTheBias) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  Context cuda = Context::cuda(0);
  EXPECT_EQ(operations_with(cuda, ChosenActivation::kGeluTanh)["column_sum"],
            operations_with(cuda, ChosenActivation::kGeluErf)["column_sum"]);
}

}  // namespace
}  // namespace onebit::classify
