#include "onebit/optim/optimizer_config.h"

#include <gtest/gtest.h>

namespace onebit::optim {
namespace {

OptimizerConfig parse(const char* text) {
  return parse_optimizer_config(
      JsonReader(parse_json(text, "recipe.json"), "recipe.json", "optimizer"));
}

TEST(OptimizerConfig, DeepSpeedRecipeLoads) {
  const OptimizerConfig config = parse(R"({"type": "OneBitAdam", "params": {
      "lr": 4e-4, "weight_decay": 0.01, "bias_correction": false, "freeze_step": 23000,
      "betas": [0.8, 0.99], "eps": 1e-6, "comm_backend_name": "nccl", "cuda_aware": true}})");
  EXPECT_EQ(config.type, OptimizerType::kOneBitAdam);
  EXPECT_EQ(config.learning_rate, 4e-4);
  EXPECT_EQ(config.weight_decay, 0.01);
  EXPECT_FALSE(config.bias_correction);
  EXPECT_EQ(config.freeze_step, 23000);
  EXPECT_EQ(config.beta1, 0.8);
  EXPECT_EQ(config.beta2, 0.99);
  EXPECT_EQ(config.epsilon, 1e-6);
}

TEST(OptimizerConfig, TypesInAnyCase) {
  for (const char* text : {R"({"type": "adam"})", R"({"type": "AdamW"})", R"({"type": "ADAM"})"}) {
    EXPECT_EQ(parse(text).type, OptimizerType::kAdam);
    EXPECT_TRUE(parse(text).decoupled_decay);
  }
  EXPECT_FALSE(parse(R"({"type": "Adam", "params": {"adam_w_mode": false}})").decoupled_decay);
}

TEST(OptimizerConfig, Choices) {
  const OptimizerConfig automatic = parse(R"({"type": "onebitadam", "params": {
      "freeze_step": "auto", "freeze_window": 200, "exp_avg_mask": {"positions": 128}}})");
  EXPECT_FALSE(automatic.freeze_step.has_value());
  EXPECT_EQ(automatic.freeze_window, 200);
  EXPECT_EQ(automatic.moving_rows.at("positions"), 128);
  const OptimizerConfig parity = parse(R"({"type": "OneBitAdam", "params": {
      "parity": "deepspeed", "scale_of": "group", "freeze_step": 10,
      "bias_correction": false}})");
  EXPECT_EQ(parity.parity, Parity::kDeepSpeed);
  EXPECT_FALSE(parity.scale_per_tensor);
  EXPECT_FALSE(parity.bias_correction);
}

void expect_error(const char* text, const std::string& part) {
  try {
    parse(text);
    ADD_FAILURE() << text << " was accepted";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("recipe.json"), std::string::npos) << message;
  }
}

TEST(OptimizerConfig, Errors) {
  expect_error(R"({})", "optimizer.type");
  expect_error(R"({"type": "OneBitAdm"})", "did you mean \"OneBitAdam\"");
  expect_error(R"({"type": "Adam", "params": {"learning_rate": 1}})", "optimizer.params");
  expect_error(R"({"type": "Adam", "params": {"weight_dacay": 1}})", "weight_decay");
  expect_error(R"({"type": "Adam", "params": {"freeze_step": 1}})", "freeze_step");
  expect_error(R"({"type": "OneBitAdam", "params": {"max_grad_norm": 1}})", "gradient_clipping");
  expect_error(R"({"type": "OneBitAdam", "params": {"freeze_step": 0}})", "freeze_step");
  expect_error(R"({"type": "OneBitAdam", "params": {"freeze_step": "atuo"}})", "auto");
  expect_error(R"({"type": "OneBitAdam", "params": {"variance": "local"}})", "remove it");
  expect_error(R"({"type": "OneBitAdam", "params": {"coordinates": "momentum"}})", "remove it");
  expect_error(R"({"type": "OneBitAdam", "params": {"eps_inside_sqrt": true}})", "eps");
  expect_error(R"({"type": "OneBitAdam", "params": {"parity": "deepspeed", "scale": "rms"}})",
               "scale");
  expect_error(
      R"({"type": "OneBitAdam", "params": {"parity": "deepspeed", "bias_correction": true}})",
      "bias_correction");
  expect_error(R"({"type": "OneBitAdam", "params": {"betas": [0.9, 1.0]}})", "betas");
  expect_error(R"({"type": "OneBitAdam", "params": {"betas": 0.9}})", "list of 2 numbers");
  expect_error(R"({"type": "Adam", "params": {"amsgrad": true}})", "AMSGrad");
}

TEST(OptimizerConfig, SuggestsOnlyWhatThereIs) {
  for (const char* typo : {"Lam", "Lambb", "OneBitLam", "ZeroOneAdm"}) {
    const std::string text = fmt::format(R"({{"type": "{}"}})", typo);
    try {
      parse(text.c_str());
      ADD_FAILURE() << typo << " was accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("must be one of Adam, AdamW, OneBitAdam"), std::string::npos)
          << message;
      for (const char* absent : {"Lamb,", "OneBitLamb", "ZeroOneAdam", "\"Lamb\""}) {
        EXPECT_EQ(message.find(absent), std::string::npos) << message;
      }
    }
  }
  expect_error(R"({"type": "OneBitLamb"})", "does not have yet");
}

}  // namespace
}  // namespace onebit::optim
