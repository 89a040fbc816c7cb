// A SQuAD recipe: the keys of all fine-tuning recipes (fine_tuning_config.h), and the sections
// `data` and `answers`.
#pragma once

#include <optional>
#include <string>

#include "onebit/apps/squad/answer_decoder.h"
#include "onebit/apps/squad/features.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::squad {

// The recipe's key "task".
inline constexpr const char* kSquadTask = "squad";

struct SquadConfig : finetune::FineTuningConfig {
  SquadConfig() { epochs = 2; }

  FeatureOptions features;
  // Absent: they point to [CLS] if the training file has unanswerable questions, else are dropped.
  std::optional<WindowsWithoutAnswer> without_answer;
  DecodeOptions decode;
  corpus::LeftOut left_out = corpus::LeftOut::kMissing;  // of the questions of both files
};

// Lists the keys of a recipe. Reports, among other faults, both run.steps and data.epochs.
SquadConfig read_squad_recipe(Keys& recipe);

// Error: lists all faults of the recipe. Another task's recipe is one.
SquadConfig parse_squad_recipe(const Recipe& recipe);

// The facts that `onebit inspect` shows.
training::RecipeFacts inspect_squad_recipe(const Recipe& recipe);

}  // namespace onebit::squad
