// Compares with values of Hugging Face's BertForPreTraining, which tools/make_model_goldens.py
// wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/pretraining_model.h"
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
  EncoderConfig config_;
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

INSTANTIATE_TEST_SUITE_P(Model, HuggingFace, ::testing::Values("gelu", "gelu_new"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace onebit::model
