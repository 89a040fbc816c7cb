#include "onebit/program/plan/advice.h"

#include <gtest/gtest.h>

#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

std::vector<Choice> choices(const std::string& more) {
  const pretrain::PretrainingConfig config = small_config(more);
  return choices_of(config.engine, {.total_steps = config.engine.run.steps});
}

std::vector<bool> of_recipe(const std::vector<Choice>& among) {
  std::vector<bool> own;
  for (const Choice& choice : among) own.push_back(choice.of_recipe);
  return own;
}

TEST(Choices, OfADenseRecipe) {
  const std::vector<Choice> found = choices(R"(, "optimizer": {"type": "AdamW"})");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].name, "f32 averages");
  EXPECT_EQ(found[1].name, "bf16 averages");
  EXPECT_EQ(found[1].wire, DType::kBF16);
  EXPECT_EQ(found[2].name, "1-bit Adam");
  EXPECT_EQ(found[3].name, "0/1 Adam");
  EXPECT_EQ(of_recipe(found), (std::vector<bool>{true, false, false, false}));
  const optim::UpdateCounts counts = found[2].optimizer->count_updates({}, 100);
  EXPECT_EQ(counts.dense, 10);
  EXPECT_EQ(counts.compressed, 90);
}

TEST(Choices, SixteenBitsAreTheRecipes) {
  const std::vector<Choice> found =
      choices(R"(, "optimizer": {"type": "Lamb"}, "communication_data_type": "fp16")");
  EXPECT_EQ(found[1].name, "f16 averages");
  EXPECT_EQ(found[2].wire, DType::kF16);
  EXPECT_EQ(of_recipe(found), (std::vector<bool>{false, true, false, false}));
}

TEST(Choices, TheRecipesOwnCompressionIsKept) {
  const std::vector<Choice> one_bit =
      choices(R"(, "optimizer": {"type": "OneBitLamb", "params": {"freeze_step": 40}})");
  EXPECT_EQ(one_bit[2].name, "1-bit LAMB");
  EXPECT_EQ(of_recipe(one_bit), (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(one_bit[2].optimizer->count_updates({}, 100).dense, 40);
  EXPECT_FALSE(one_bit[0].optimizer->compresses());
  const std::vector<Choice> zero_one =
      choices(R"(, "optimizer": {"type": "ZeroOneAdam", "params": {"var_freeze_step": 16}})");
  EXPECT_EQ(of_recipe(zero_one), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(zero_one[3].optimizer->count_updates({}, 100).dense, 16);
}

}  // namespace
}  // namespace onebit::plan
