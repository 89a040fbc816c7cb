// The keys of optimizers in recipes, and the errors about them.
#include "onebit/optim/optimizer_list.h"

#include <gtest/gtest.h>

#include "onebit/optim/adam_options.h"
#include "onebit/optim/freeze_rule.h"
#include "onebit/optim/onebit_adam.h"

namespace onebit::optim {
namespace {

std::shared_ptr<const OptimizerRecipe> parse(const std::string& text) {
  return read_optimizer(JsonReader(parse_json(text, "recipe.json"), "recipe.json", "optimizer"));
}

JsonReader params_of(const char* text) {
  return {parse_json(text, "recipe.json"), "recipe.json", "optimizer.params"};
}

TEST(OptimizerList, DeepSpeedRecipeLoads) {
  const auto recipe = parse(R"({"type": "OneBitAdam", "params": {
      "lr": 4e-4, "weight_decay": 0.01, "bias_correction": false, "freeze_step": 23000,
      "betas": [0.8, 0.99], "eps": 1e-6, "comm_backend_name": "nccl", "cuda_aware": true}})");
  EXPECT_EQ(recipe->learning_rate(), 4e-4);
  EXPECT_EQ(recipe->last_dense_update({}), 23000);
  const AdamOptions& adam = *recipe->followed_adam();
  EXPECT_EQ(adam.weight_decay, 0.01);
  EXPECT_FALSE(adam.bias_correction);
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.99);
  EXPECT_EQ(adam.epsilon, 1e-6);
}

TEST(OptimizerList, TypesInAnyCase) {
  for (const char* text : {R"({"type": "adam"})", R"({"type": "AdamW"})", R"({"type": "ADAM"})"}) {
    EXPECT_FALSE(parse(text)->compresses());
    EXPECT_TRUE(parse(text)->followed_adam()->decoupled_decay);
  }
  EXPECT_TRUE(parse(R"({"type": "onebitadam"})")->compresses());
  const auto through_gradients = parse(R"({"type": "Adam", "params": {"adam_w_mode": false}})");
  EXPECT_FALSE(through_gradients->followed_adam()->decoupled_decay);
}

TEST(OptimizerList, FreezeOptions) {
  JsonReader params = params_of(R"({"freeze_step": "auto", "freeze_window": 200})");
  const FreezeOptions automatic = read_freeze_options(params);
  EXPECT_FALSE(automatic.step.has_value());
  EXPECT_EQ(automatic.window, 200);
  JsonReader none = params_of("{}");
  EXPECT_EQ(read_freeze_options(none).step, 100000);
  JsonReader number = params_of(R"({"freeze_step": 7})");
  EXPECT_EQ(read_freeze_options(number).step, 7);
}

TEST(OptimizerList, RecipesThatEarlierRunsHaveWrittenLoad) {
  EXPECT_TRUE(parse(R"({"type": "OneBitAdam", "params": {"parity": "none"}})")->compresses());
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

TEST(OptimizerList, Errors) {
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
  expect_error(R"({"type": "OneBitAdam", "params": {"scale": "rms"}})", "remove it");
  expect_error(R"({"type": "OneBitAdam", "params": {"parity": "deepspeed"}})", "tests/deepspeed");
  expect_error(R"({"type": "OneBitAdam", "params": {"exp_avg_mask": 3}})", "rows that move");
  expect_error(R"({"type": "OneBitAdam", "params": {"betas": [0.9, 1.0]}})", "betas");
  expect_error(R"({"type": "OneBitAdam", "params": {"betas": 0.9}})", "list of 2 numbers");
  expect_error(R"({"type": "Adam", "params": {"amsgrad": true}})", "AMSGrad");
}

TEST(OptimizerList, SuggestsOnlyWhatThereIs) {
  for (const char* typo : {"Lam", "Lambb", "OneBitLam", "ZeroOneAdm"}) {
    const std::string text = fmt::format(R"({{"type": "{}"}})", typo);
    try {
      parse(text);
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
