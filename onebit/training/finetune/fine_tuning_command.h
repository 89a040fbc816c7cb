// Shared by the commands that fine-tune a model on a file of examples.
#pragma once

#include <string>

#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/recipe_options.h"

namespace onebit::finetune {

struct FineTuningArguments {
  commands::RecipeOptions recipe;
  std::string model, train, dev;
};

// --model, --train, --dev; `train` and `dev` describe the content of the files.
void add_fine_tuning_options(commands::Command command, FineTuningArguments& given,
                             const std::string& train, const std::string& dev);

// Trains on all ranks.
int fine_tune(const FineTuningArguments& given, training::MakeTask make);

}  // namespace onebit::finetune
