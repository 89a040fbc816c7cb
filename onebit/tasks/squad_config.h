// A SQuAD recipe: what fine-tuning recipes share (fine_tuning_config.h), and the sections `data`
// and `answers`.
#pragma once

#include <optional>
#include <string>

#include "onebit/squad/answer_decoder.h"
#include "onebit/squad/features.h"
#include "onebit/tasks/fine_tuning_config.h"
#include "onebit/tasks/task_list.h"

namespace onebit::tasks {

// The recipe's key "task".
inline constexpr const char* kSquadTask = "squad";

struct SquadConfig : FineTuningConfig {
  SquadConfig() { epochs = 2; }

  squad::FeatureOptions features;
  // Absent: to [CLS] where the training file has unanswerable questions, else dropped.
  std::optional<squad::WindowsWithoutAnswer> without_answer;
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

}  // namespace onebit::tasks
