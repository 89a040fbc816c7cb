// The keys of optimizers in recipes, and the errors about them.
#include "onebit/exchange/engine/optimizer_list.h"
#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/exchange/one_bit/freeze.h"
#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/optim/adam.h"
#include "tests/base/message_of.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

std::shared_ptr<const OptimizerRecipe> parse(const std::string& text) {
  const Keys keys(parse_json(text, "recipe.json"), "recipe.json", "optimizer");
  auto recipe = engine::read_optimizer(keys);
  keys.check();
  return recipe;
}

FreezeOptions freeze_options_of(const char* text) {
  Keys params(parse_json(text, "recipe.json"), "recipe.json", "optimizer.params");
  const FreezeOptions options = read_freeze_options(params);
  params.check();
  return options;
}

TEST(OptimizerList, DeepSpeedRecipeLoads) {
  const auto recipe = parse(R"({"type": "OneBitAdam", "params": {
      "lr": 4e-4, "weight_decay": 0.01, "bias_correction": false, "freeze_step": 23000,
      "betas": [0.8, 0.99], "eps": 1e-6}})");
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

TEST(OptimizerList, LambAsDeepSpeedsUsersWriteIt) {
  for (const char* type : {"Lamb", "LAMB", "FusedLamb", "lamb"}) {
    const auto recipe = parse(fmt::format(R"({{"type": "{}", "params": {{
        "lr": 11e-3, "weight_decay": 0.01, "bias_correction": false, "betas": [0.9, 0.98],
        "eps": 1e-6, "max_coeff": 0.3, "min_coeff": 0.02, "max_grad_norm": 0.0, "amsgrad": false,
        "eps_inside_sqrt": true}}}})",
                                          type));
    EXPECT_EQ(recipe->learning_rate(), 11e-3);
    EXPECT_FALSE(recipe->compresses());
    EXPECT_EQ(recipe->followed_adam(), nullptr);
    EXPECT_EQ(
        recipe->describe(),
        "lr 0.011, betas 0.9 0.98, eps 1e-06, weight decay 0.01, no bias correction, trust ratio "
        "0.02 to 0.3, eps inside the root");
  }
  EXPECT_EQ(parse(R"({"type": "Lamb"})")->describe(),
            "lr 0.001, betas 0.9 0.999, eps 1e-08, weight decay 0, trust ratio 0.01 to 10");
}

TEST(OptimizerList, FreezeOptions) {
  const FreezeOptions automatic =
      freeze_options_of(R"({"freeze_step": "auto", "freeze_window": 200})");
  EXPECT_FALSE(automatic.step.has_value());
  EXPECT_EQ(automatic.window, 200);
  EXPECT_EQ(freeze_options_of("{}").step, 100000);
  EXPECT_EQ(freeze_options_of(R"({"freeze_step": 7})").step, 7);
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
  expect_error(R"({"type": "OneBitAdam", "params": {"eps_inside_sqrt": true}})", "eps");
  expect_error(R"({"type": "OneBitAdam", "params": {"exp_avg_mask": 3}})",
               "number of rows that are updated");
  expect_error(R"({"type": "OneBitAdam", "params": {"betas": [0.9, 1.0]}})", "betas");
  expect_error(R"({"type": "OneBitAdam", "params": {"betas": 0.9}})", "list of 2 numbers");
  expect_error(R"({"type": "Adam", "params": {"amsgrad": true}})", "AMSGrad");
}

TEST(OptimizerList, ErrorsOfLamb) {
  const std::pair<const char*, const char*> refused[] = {
      {R"("min_coeff": 0.5, "max_coeff": 0.3)",
       "min_coeff` is 0.5, which is above max_coeff (0.3)"},
      {R"("min_coeff": 11)", "min_coeff` is 11, which is above max_coeff (10)"},
      {R"("min_coeff": -0.1)", "min_coeff` is -0.1; it must be a number of at least 0"},
      {R"("max_coeff": -1)", "max_coeff` is -1; "},
      {R"("max_coeff": 0)", "max_coeff` is 0; "},
      {R"("max_coeff": "0.3")", "max_coeff"},
      {R"("min_coeff": [0.01])", "min_coeff"},
      {R"("eps_inside_sqrt": 1)", "eps_inside_sqrt"},
      {R"("bias_correction": "no")", "bias_correction"},
      {R"("lr": -1)", "lr` is -1"},
      {R"("eps": -1e-8)", "eps` is"},
      {R"("weight_decay": -0.01)", "weight_decay` is -0.01"},
      {R"("betas": [1.0, 0.999])", "betas"},
      {R"("amsgrad": true)", "AMSGrad"},
      {R"("max_grad_norm": 1.0)", "gradient_clipping"},
      {R"("adam_w_mode": true)", "part of the update whose norm"},
      {R"("max_coef": 1)", "max_coeff"},
      {R"("freeze_step": 10)", "freeze_step"}};
  for (const auto& [params, part] : refused) {
    expect_error(fmt::format(R"({{"type": "Lamb", "params": {{{}}}}})", params).c_str(), part);
  }
  expect_error(R"({"type": "Adam", "params": {"max_coeff": 1}})", "max_coeff");
}

TEST(OptimizerList, NamesWhatThereIs) {
  expect_error(R"({"type": "OneBitLam"})", "must be one of Adam, AdamW, ");
  expect_error(R"({"type": "OneBitLam"})", " (did you mean \"OneBitLamb\"?)");
  expect_error(R"({"type": "ZeroOneAdm"})", "did you mean \"ZeroOneAdam\"");
  expect_error(R"({"type": "Lambb"})", "did you mean \"Lamb\"");
  expect_error(R"({"type": "lion"})", "does not support yet; use AdamW");
}

TEST(OptimizerList, ZeroOneAdamAsDeepSpeedsUsersWriteIt) {
  EXPECT_NO_THROW(parse(R"({"type": "ZeroOneAdam", "params": {"lr": 4e-4, "weight_decay": 0.01,
      "bias_correction": false, "var_freeze_step": 12500, "var_update_scaler": 16,
      "local_step_scaler": 32678, "local_step_clipper": 16}})"));
  const std::pair<const char*, const char*> refused[] = {
      {R"("min_coeff": 0.01)", "min_coeff"},
      {R"("var_freeze_step": 0)", "var_freeze_step"},
      {R"("local_step_clipper": 0)", "local_step_clipper"},
      {R"("local_step_scaler": 1.5)", "local_step_scaler"},
      {R"("freeze_step": 10)", "freeze_step"},
      {R"("eps_inside_sqrt": true)", "eps_inside_sqrt"}};
  for (const auto& [params, part] : refused) {
    expect_error(fmt::format(R"({{"type": "ZeroOneAdam", "params": {{{}}}}})", params).c_str(),
                 part);
  }
}

// Loading another optimizer's checkpoint, in either phase, is an error with both names.
TEST(OptimizerList, ACheckpointOfAnotherOptimizerIsRefused) {
  const std::pair<const char*, const char*> all[] = {
      {"adam", R"({"type": "AdamW"})"},
      {"lamb", R"({"type": "Lamb"})"},
      {"onebit_adam", R"({"type": "OneBitAdam", "params": {"freeze_step": 3}})"},
      {"onebit_lamb", R"({"type": "OneBitLamb", "params": {"freeze_step": 3}})"},
      {"zero_one_adam", R"({"type": "ZeroOneAdam", "params": {"var_freeze_step": 5,
          "var_update_scaler": 3, "local_step_scaler": 1, "local_step_clipper": 4}})"}};
  for (const auto& [name, text] : all) {
    for (const int steps : {2, 7}) {
      const auto saved = on_ranks(2, {.optimizer = parse(text)}, [&](Trial& trial) {
        trial.steps(steps);
        return trial.save();
      });
      for (const auto& [other, other_text] : all) {
        const std::string expected =
            name == other ? "(no error)"
                          : fmt::format(
                                "the checkpoint contains the state of the optimizer {}, "
                                "but the recipe selects {}: ",
                                name, other);
        const auto errors = on_ranks(2, {.optimizer = parse(other_text)}, [&](Trial& trial) {
          return message_of([&] { trial.load(saved, trial.values(), steps + 1); });
        });
        for (const std::string& error : errors) EXPECT_THAT(error, ::testing::StartsWith(expected));
      }
    }
  }
}

}  // namespace
}  // namespace onebit::optim
