#include "onebit/ground/recipe/recipe.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/keys.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

TEST(Recipe, OverridesReachNestedKeys) {
  Recipe recipe = {.values = parse_json(R"({"optimizer": {"params": {"lr": 1}}})", "r")};
  apply_override(recipe, "optimizer.params.lr=1e-4");
  apply_override(recipe, "run.steps=7");
  apply_override(recipe, "optimizer.type=AdamW");
  EXPECT_EQ(recipe.values["optimizer"]["params"]["lr"].get<double>(), 1e-4);
  EXPECT_EQ(recipe.values["run"]["steps"].get<int>(), 7);
  EXPECT_EQ(recipe.values["optimizer"]["type"].get<std::string>(), "AdamW");
}

TEST(Recipe, KnowsWhatTheCommandLineChanges) {
  Recipe recipe = {.values = parse_json(R"({"data": {"text": "a", "label": "b"}, "run": {}})", "r"),
                   .is_of_model = true};
  apply_overrides(recipe, {"data.text=c", "run={\"steps\": 3}"});
  Keys keys(recipe);
  const Keys data = keys.section("data", ""), run = keys.section("run", "");
  EXPECT_TRUE(data.is_changed("text"));
  EXPECT_FALSE(data.is_remembered("text"));
  EXPECT_TRUE(data.is_remembered("label"));
  EXPECT_FALSE(data.is_remembered("score"));  // there is none
  EXPECT_TRUE(run.is_changed("steps"));
  recipe.is_of_model = false;  // of a training, whose recipe is the user's
  EXPECT_FALSE(Keys(recipe).section("data", "").is_remembered("label"));
}

TEST(Recipe, OnlyATrainingNeedsEveryKey) {
  Recipe recipe = {.place = "r"};
  const auto errors = [&] {
    Keys keys(recipe);
    keys.need("optimizer", "give one");
    return keys.errors();
  };
  EXPECT_EQ(errors(), std::vector<std::string>{"r: key `optimizer` is missing: give one"});
  recipe.is_of_model = true;
  EXPECT_EQ(errors(), std::vector<std::string>{});
}

TEST(Recipe, RefusesBrokenOverrides) {
  Recipe recipe = {.values = parse_json(R"({"a": 1})", "r")};
  for (const char* bad : {"a", "=3", "a.b=3", "x..y=3"}) {
    EXPECT_THROW(apply_override(recipe, bad), Error) << bad;
  }
}

// DeepSpeed reads Hjson.
TEST(Recipe, CommentsAndLastCommasOfHjsonAreRead) {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& text) {
    write_file_atomically(folder / "r.json", text);
    return load_recipe(folder / "r.json", {}).values;
  };
  const Json recipe = load(
      "# a comment, with a \" quote\n{\"a\": [1, 2, # last\n ],\n \"b#,]\": \"#,}\", // \"x\",\n"
      " \"c\": {\"d\": 1,/* # } */ },\n}\n");
  EXPECT_EQ(recipe, Json::parse(R"({"a": [1, 2], "b#,]": "#,}", "c": {"d": 1}})"));
  // Places are places in the file.
  EXPECT_NE(message_of([&] { load("# one\n{\"a\": 1, # two\n  nonsense}\n"); }).find("r.json:3:4"),
            std::string::npos);
  EXPECT_NE(message_of([&] { load("{\"a\": [1,, 2]}"); }).find("not valid JSON"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { load("{\"a\": [1,, 2]}"); }).find("Hjson"), std::string::npos);
}

TEST(Recipe, AFileOfAModelIsOneError) {
  const TemporaryFolder folder;
  for (const char* text :
       {R"({"hidden_size": 8, "model_type": "bert"})", R"({"tokenizer_class": "BertTokenizer"})",
        R"({"max_seq_length": 256})"}) {
    write_file_atomically(folder / "config.json", text);
    EXPECT_NE(message_of([&] {
                load_recipe(folder / "config.json", {});
              }).find("it is a file of a model, not a recipe"),
              std::string::npos);
  }
}

TEST(Recipe, OtherHjsonIsRefusedByName) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "ds.json", "{\n  # DeepSpeed's\n  train_batch_size: 8\n}\n");
  const std::string error = message_of([&] { load_recipe(folder / "ds.json", {}); });
  EXPECT_NE(error.find("ds.json:3:5: not valid JSON"), std::string::npos) << error;
  EXPECT_NE(error.find("the word \"train_batch_size\" without quotes, as in the Hjson"),
            std::string::npos)
      << error;
  EXPECT_NE(message_of([&] { load_recipe("/dev/zero", {}); }).find("the most that a recipe may"),
            std::string::npos);
}

}  // namespace
}  // namespace onebit
