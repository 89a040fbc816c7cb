#include "onebit/ground/recipe/overrides.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

TEST(Recipe, OverridesReachNestedKeys) {
  Json recipe = parse_json(R"({"optimizer": {"params": {"lr": 1}}})", "r");
  apply_override(recipe, "optimizer.params.lr=1e-4");
  apply_override(recipe, "run.steps=7");
  apply_override(recipe, "optimizer.type=AdamW");
  EXPECT_EQ(recipe["optimizer"]["params"]["lr"].get<double>(), 1e-4);
  EXPECT_EQ(recipe["run"]["steps"].get<int>(), 7);
  EXPECT_EQ(recipe["optimizer"]["type"].get<std::string>(), "AdamW");
}

TEST(Recipe, RefusesBrokenOverrides) {
  Json recipe = parse_json(R"({"a": 1})", "r");
  for (const char* bad : {"a", "=3", "a.b=3", "x..y=3"}) {
    EXPECT_THROW(apply_override(recipe, bad), Error) << bad;
  }
}

// DeepSpeed reads Hjson.
TEST(Recipe, CommentsAndLastCommasOfHjsonAreRead) {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& text) {
    write_file_atomically(folder / "r.json", text);
    return load_recipe(folder / "r.json", {});
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
}

}  // namespace
}  // namespace onebit
