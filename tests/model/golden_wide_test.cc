// Compares with Hugging Face's BertForPreTraining at sizes that fill vectors, tiles and threads:
// 128 wide, a vocabulary of 1000, sequences of up to 300 tokens. For every gradient the file holds
// the norm and products with 16 random vectors h: the mean of (error . h)^2 is the square of the
// error's norm times the variance of an entry of h, 1/12.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "onebit/ground/base/json.h"
#include "onebit/math/model/pretraining_model.h"
#include "tests/model/golden.h"
#include "tests/model/test_model.h"

namespace onebit::model {
namespace {

class WideModel : public ::testing::TestWithParam<DType> {
 protected:
  WideModel() : golden_(read_json(golden_folder() / "golden.json").at("wide")) {
    Json shape = golden_.at("config");
    shape["hidden_act"] = golden_.at("activation");
    Keys section(shape, "golden.json", "config");
    config_ = read_config(section, 0);
    section.check();
  }

  double product(const ParameterEntry& entry, const std::vector<double>& values, size_t draw) {
    const uint32_t seed = hash_of(entry.name + "#" + std::to_string(draw));
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += values[i] * hashed(seed, static_cast<uint32_t>(i));
    }
    return sum;
  }

  double relative_error(const ParameterEntry& entry, const std::vector<double>& gradient) {
    const Json& expected = golden_.at("tensors").at(entry.name);
    const Json& products = expected.at("products");
    double sum = 0;
    for (size_t draw = 0; draw < products.size(); ++draw) {
      const double error = product(entry, gradient, draw) - products[draw].get<double>();
      sum += error * error;
    }
    // The true gradient of a key bias is zero: its error is compared with the query bias.
    std::string scale = entry.name;
    if (const size_t key = scale.find("key.bias"); key != std::string::npos) {
      scale = scale.substr(0, key) + "query.bias";
    }
    const double norm = golden_.at("tensors").at(scale).at("norm").get<double>();
    return std::sqrt(12 * sum / static_cast<double>(products.size())) / norm;
  }

  Json golden_;
  EncoderConfig config_;
  Context context_ = Context::cpu(2);
};

TEST_P(WideModel, LossAndGradients) {
  const double tolerance = GetParam() == DType::kF32 ? 1e-4 : 2e-2;
  TinyBatch batch = batch_from(golden_.at("batch"));
  ParameterTable table;
  PreTrainingModel model(config_, table, PreTrainingHeads::kBoth);
  fill_by_name(table, GetParam());
  model.plan(context_, batch.limits(), {}, true);
  const PreTrainingModel::LossWeights weights{
      .masked_lm = 1.0 / static_cast<double>(batch.masked_rows.size()),
      .next_sentence = 1.0 / static_cast<double>(batch.sequences())};
  const auto result = model.forward_backward(context_, batch.view(), weights, {});
  const double loss =
      weights.masked_lm * result.mlm_loss_sum + weights.next_sentence * result.nsp_loss_sum;
  const double expected = golden_.at("loss").get<double>();
  EXPECT_NEAR(loss, expected, tolerance * expected);
  const Gradients gradients = gradients_of(table);
  ASSERT_EQ(gradients.size(), golden_.at("tensors").size());
  for (const ParameterEntry& entry : table.entries()) {
    EXPECT_LE(relative_error(entry, gradients.at(entry.name)), tolerance) << entry.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Model, WideModel, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace onebit::model
