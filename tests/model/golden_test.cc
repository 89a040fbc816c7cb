// Against Hugging Face's BertForPreTraining: tools/make_model_goldens.py wrote what is expected.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "onebit/base/file.h"
#include "onebit/base/json.h"
#include "onebit/model/pretraining_model.h"
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
    JsonReader section(shape, "golden.json", "config");
    config_ = read_config(section, 0);
    section.finish();
    for (const Json& batch : golden_.at("batches")) batches_.push_back(batch_from(batch));
    for (const TinyBatch& batch : batches_) {
      const BatchLimits needed = batch.limits();
      limits_.rows = std::max(limits_.rows, needed.rows);
      limits_.sequences = std::max(limits_.sequences, needed.sequences);
      limits_.masked = std::max(limits_.masked, needed.masked);
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
    params::Table table;
    PreTrainingModel model(config_, table);
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

// AdamW as PyTorch writes it: decoupled decay before the step, bias correction, eps outside.
class AdamW {
 public:
  AdamW(const Json& settings, const params::Table& table)
      : rate_(settings.at("lr").get<double>()),
        beta1_(settings.at("betas")[0].get<double>()),
        beta2_(settings.at("betas")[1].get<double>()),
        epsilon_(settings.at("eps").get<double>()),
        decay_(settings.at("weight_decay").get<double>()),
        momentum_(static_cast<size_t>(table.size_elements())),
        variance_(momentum_.size()) {}

  void step(const params::Table& table) {
    ++step_;
    for (const params::Entry& entry : table.entries()) {
      float* values = table.value_of(entry).data<float>();
      const float* gradients = table.gradient_of(entry).data<float>();
      for (int64_t i = 0; i < entry.shape.elements(); ++i) {
        const auto at = static_cast<size_t>(entry.offset_elements + i);
        const double gradient = static_cast<double>(gradients[i]);
        momentum_[at] = beta1_ * momentum_[at] + (1 - beta1_) * gradient;
        variance_[at] = beta2_ * variance_[at] + (1 - beta2_) * gradient * gradient;
        const double mean = momentum_[at] / (1 - std::pow(beta1_, step_));
        const double square = variance_[at] / (1 - std::pow(beta2_, step_));
        const double kept =
            static_cast<double>(values[i]) * (1 - (entry.decay ? rate_ * decay_ : 0));
        values[i] = static_cast<float>(kept - rate_ * mean / (std::sqrt(square) + epsilon_));
      }
    }
  }

 private:
  double rate_, beta1_, beta2_, epsilon_, decay_;
  int step_ = 0;
  std::vector<double> momentum_, variance_;
};

TEST_P(HuggingFace, TwentyAdamWStepsFollowPyTorch) {
  params::Table table;
  PreTrainingModel model(config_, table);
  fill_by_name(table, DType::kF32);
  model.plan(context_, limits_, {}, true);
  AdamW optimizer(golden_.at("adamw"), table);
  const Json& losses = expected_.at("losses");
  ASSERT_EQ(losses.size(), 20u);
  for (size_t step = 0; step < losses.size(); ++step) {
    clear_gradients(table);
    const double expected = losses[step].get<double>();
    EXPECT_NEAR(loss(model, batches_[step % batches_.size()]), expected, 1e-4) << "step " << step;
    optimizer.step(table);
  }
}

INSTANTIATE_TEST_SUITE_P(Model, HuggingFace, ::testing::Values("gelu", "gelu_new"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace onebit::model
