#include "onebit/ground/recipe/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/exchange/engine/config.h"
#include "onebit/training/training/session_config.h"

namespace onebit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Json recipe() {
  return parse_json(R"({"train_batch_size": 32,
                        "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
                        "run": {"steps": 100, "checkpoint_every": 10}})",
                    "recipe.json");
}

std::vector<std::string> json_differences(const Json& was, const Json& is) {
  Keys keys(is, "recipe.json");
  engine::parse_engine_config(keys);
  training::read_session_config(keys);
  return recipe_differences(was, is, keys.rows());
}

TEST(RecipeDifferences, AreNamedWithBothValues) {
  Json other = recipe();
  other["optimizer"]["params"]["lr"] = 0.002;
  other["optimizer"]["params"]["betas"] = {0.9, 0.98};
  other["run"].erase("checkpoint_every");
  other["run"]["steps"] = 200;
  EXPECT_THAT(json_differences(recipe(), other),
              ElementsAre("changed: optimizer.params.betas.0 is 0.9, was absent",
                          "changed: optimizer.params.betas.1 is 0.98, was absent",
                          "changed: optimizer.params.lr is 0.002, was 0.001",
                          "changed: run.steps is 200, was 100"));
  EXPECT_THAT(json_differences(recipe(), recipe()), IsEmpty());
}

// An older recipe may have a key that no longer exists.
TEST(RecipeDifferences, OfAKeyThatIsNotKnownIsNamed) {
  Json old = recipe();
  old["run"]["watch_something"] = 1;
  EXPECT_THAT(json_differences(old, recipe()),
              ElementsAre("changed: run.watch_something is absent, was 1"));
}

TEST(RecipeDifferences, InKeysThatChangeNothingAreNone) {
  Json other = recipe();
  other["run"].update({{"checkpoint_every", 5},
                       {"evaluate_every", 5},
                       {"keep_last", 5},
                       {"max_skipped_steps", 5},
                       {"check_replicas_every", 5},
                       {"watch_every", 5},
                       {"watch_tensors", "bias"}});
  other["tensorboard"] = {{"enabled", true}, {"output_path", "events"}, {"job_name", "a"}};
  other["$schema"] = "recipe.schema.json";
  other["comment"] = {{"by", "me"}};
  other["zero_optimization"] = {{"stage", 0}};
  other["fp16"] = {{"auto_cast", false}};
  EXPECT_THAT(json_differences(recipe(), other), IsEmpty());
}

TEST(RecipeDifferences, InKeysWithoutEffectAreNone) {
  Keys listing = Keys::listing();
  engine::parse_engine_config(listing);
  training::read_session_config(listing);
  int without_effect = 0;
  for (const KeyRow& row : listing.rows().rows) {
    if (row.use != KeyUse::kNoEffect) continue;
    Json other = recipe();
    other[row.name] = {{"enabled", true}};
    EXPECT_THAT(json_differences(recipe(), other), IsEmpty()) << row.name;
    ++without_effect;
  }
  EXPECT_GT(without_effect, 10);
}

}  // namespace
}  // namespace onebit
