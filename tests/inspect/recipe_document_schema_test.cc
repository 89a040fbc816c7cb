// Compares the schema of recipes with their parser: both use one table and accept the same recipes.
#include "onebit/program/inspect/recipe_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/key_rows.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/program/inspect/task_list.h"
#include "tests/base/message_of.h"
#include "tests/inspect/json_schema.h"

namespace onebit::inspect {
namespace {

// Rules that combine several keys, which only the parser can check.
const std::set<std::string> kJoined = {
    "/bf16/enabled",
    "/bfloat16/enabled",
    "/classify/best_by",  // of the problem
    "/data/epochs",
    "/data/masked_lm_final_probability",  // together with data.masked_lm_schedule
    "/data/masked_lm_schedule",
    "/data/negative",          // not together with data.score
    "/data/sequence_packing",  // not together with data.next_sentence
    "/data/sequence_length",
    "/model/global_attn_every_n_layers",  // of models with windows, as the next two and the last
    "/model/global_rope_theta",
    "/model/hidden_size",
    "/model/local_attention",  // even
    "/model/local_rope_theta",
    "/model/max_position_embeddings",
    "/model/num_attention_heads",
    "/model/type_vocab_size",           // two where sequences are pairs
    "/optimizer/params/min_coeff",      // at most max_coeff
    "/progressive_layer_drop/enabled",  // of pre-LN models
    "/run/clip",
    "/run/levels",  // not two without a compressed phase
    "/run/watch_adam",
    "/scheduler/params/cycle_max_mom",
    "/scheduler/params/cycle_min_mom",
    "/scheduler/params/start_step",  // within the run, where that has a length
    "/scheduler/params/warmup_proportion",
};

std::vector<std::string> errors_of(const Json& recipe, const inspect::TaskKind& task) {
  Keys keys(recipe, "r");
  try {
    task.read(keys);
  } catch (const Error& error) {  // the recipe of another task
    return {error.what()};
  }
  return keys.errors();
}

Json base_of(const std::string& task) {
  Json recipe = {{"task", task},
                 {"train_batch_size", 8},
                 {"optimizer", {{"type", "AdamW"}, {"params", Json::object()}}}};
  if (task == "pretrain") recipe["run"] = {{"steps", 9}};
  return recipe;
}

TEST(RecipeSchema, EveryRecipeOfTheTreeIsValid) {
  const Json every = recipe_schema("");
  int seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(ONEBIT_SOURCE_DIR "/recipes")) {
    const Json recipe = read_json(file.path());
    const std::string place = file.path().string();
    const inspect::TaskKind& task = task_of({.values = recipe, .place = place});
    EXPECT_THAT(errors_of(recipe, task), testing::IsEmpty()) << file.path();
    EXPECT_TRUE(is_valid(recipe, recipe_schema(task.name))) << file.path();
    EXPECT_TRUE(is_valid(recipe, every)) << file.path();
    ++seen;
  }
  EXPECT_GE(seen, 30);
}

TEST(RecipeSchema, ATasksSchemaRefusesAnothersRecipe) {
  const Json recipe = base_of("pretrain");
  EXPECT_TRUE(is_valid(recipe, recipe_schema("pretrain")));
  EXPECT_FALSE(is_valid(recipe, recipe_schema("squad")));
  Json squad = base_of("squad");
  squad["answers"] = {{"text", "projection"}};
  EXPECT_TRUE(is_valid(squad, recipe_schema("")));
  squad.erase("task");  // then it is one for pre-training
  EXPECT_FALSE(is_valid(squad, recipe_schema("")));
  EXPECT_FALSE(is_valid({{"task", "squat"}}, recipe_schema("")));
  EXPECT_EQ(message_of([] { recipe_schema("squat"); }), "there is no task \"squat\"");
}

// Values of every type, at limits and beyond.
std::vector<Json> probes_of(const KeyRow& row) {
  std::vector<Json> probes = {-1,
                              0,
                              0.5,
                              1,
                              3,
                              "auto",
                              "no such word",
                              "x",
                              true,
                              false,
                              200,
                              1e10,
                              7.0,
                              Json::array(),
                              {0.5},
                              {1, 1},
                              {1, 2},
                              Json::object(),
                              {{"enabled", true}},
                              {{"enabled", false}},
                              {{"a", 1}},
                              {{"a", -1}}};
  for (const std::string& word : row.form.words) probes.emplace_back(word);
  probes.push_back(row.fallback.is_null() ? Json(0) : row.fallback);
  return probes;
}

struct Judged {
  int accepted = 0, refused = 0;
};

// Puts every probe under `pointer` and compares parser and schema.
void judge(const Json& base, const std::string& pointer, const KeyRow& row,
           const inspect::TaskKind& task, const Json& schema, Judged& judged) {
  for (const Json& probe : probes_of(row)) {
    Json recipe = base;
    recipe[Json::json_pointer(pointer)] = probe;
    const auto errors = errors_of(recipe, task);
    const bool valid = is_valid(recipe, schema);
    ++(errors.empty() ? judged.accepted : judged.refused);
    if (errors.empty()) {
      EXPECT_TRUE(valid) << pointer << " " << probe.dump();
    } else if (valid) {
      const bool repeats = row.form.type == KeyType::kRate && probe.is_array();
      EXPECT_TRUE(repeats || kJoined.contains(pointer)) << pointer << " " << probe.dump() << "\n"
                                                        << errors.front();
    }
  }
}

void judge_section(const Json& base, const std::string& path, const KeyRow& section,
                   const inspect::TaskKind& task, const Json& schema, Judged& judged) {
  for (const KeyRow& row : section.rows) {
    const std::string pointer = path + "/" + row.name;
    Json inner = base;
    if (!row.kind.empty()) inner[Json::json_pointer(path + "/type")] = row.kind;
    // What OneCycle needs.
    if (row.kind == "OneCycle") {
      inner[Json::json_pointer(pointer)] = {{"cycle_min_lr", 1}, {"cycle_max_lr", 2}};
    }
    if (row.form.type == KeyType::kSection) {
      judge_section(inner, pointer, row, task, schema, judged);
    } else {
      judge(inner, pointer, row, task, schema, judged);
    }
  }
  Json recipe = base;
  recipe[Json::json_pointer(path + "/no such key")] = 1;
  EXPECT_FALSE(is_valid(recipe, schema)) << path;
  EXPECT_FALSE(errors_of(recipe, task).empty()) << path;
}

TEST(RecipeSchema, JudgesEveryKeyAsTheParserDoes) {
  for (const inspect::TaskKind& task : tasks()) {
    Keys keys = Keys::listing();
    task.read(keys);
    Judged judged;
    judge_section(base_of(task.name), "", keys.rows(), task, recipe_schema(task.name), judged);
    EXPECT_GT(judged.accepted, 500) << task.name;
    EXPECT_GT(judged.refused, 1000) << task.name;
  }
}

TEST(RecipeSchema, ReportsWhatEditorsShow) {
  const Json schema = recipe_schema("pretrain");
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  const Json& keep_last = schema["properties"]["run"]["properties"]["keep_last"];
  EXPECT_EQ(keep_last, parse_json(R"({"description": "checkpoints that are kept",
                                      "type": "integer", "minimum": 1, "default": 3})",
                                  "expected"));
  EXPECT_EQ(schema["required"], Json({"optimizer"}));
  EXPECT_EQ(schema["properties"]["run"]["required"], Json({"steps"}));
}

}  // namespace
}  // namespace onebit::inspect
