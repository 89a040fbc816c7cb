// A SQuAD recipe: the engine's keys (engine/config.h) and the sections `model`, `data`, `answers`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/engine/config.h"
#include "onebit/model/config.h"
#include "onebit/model/memory_plan.h"
#include "onebit/squad/answer_decoder.h"
#include "onebit/squad/features.h"
#include "onebit/tasks/task_list.h"

namespace onebit::tasks {

// The recipe's key "task".
inline constexpr const char* kSquadTask = "squad";

// Prefixes of what SQuAD leaves of a checkpoint: heads of other tasks, and the pooler.
inline const std::vector<std::string> kNotForSquad = {"cls.", "classifier.", "bert.pooler."};

struct SquadConfig {
  engine::EngineConfig engine;  // run.steps is 0 unless the recipe gives it
  model::MemoryOptions memory;
  // `model`: instead of the checkpoint's.
  std::optional<double> hidden_dropout, attention_dropout;
  squad::FeatureOptions features;
  // Absent: to [CLS] where the training file has unanswerable questions, else dropped.
  std::optional<squad::WindowsWithoutAnswer> without_answer;
  double epochs = 2;  // unless run.steps is given
  int64_t prediction_batch = 32;
  squad::DecodeOptions decode;
};

// Lists the keys of a recipe. Wrong, among others: run.steps and data.epochs both given.
SquadConfig read_squad_recipe(Keys& recipe);

// Error: everything that is wrong, another task's recipe included.
SquadConfig parse_squad_recipe(const Json& recipe, const std::string& place);

// What `onebit inspect` shows.
RecipeFacts inspect_squad_recipe(const Json& recipe, const std::string& place);

// The recipe of the run or checkpoint that `model` names; empty where it is a model folder by
// itself or of another task's run.
std::optional<SquadConfig> squad_config_of_run(const Path& model);

// The configuration with the recipe's dropout. Error: fewer positions than max_sequence_length.
model::BertConfig squad_model(const SquadConfig& config, model::BertConfig checkpoint);

}  // namespace onebit::tasks
