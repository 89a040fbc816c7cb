// Shared by the commands that fine-tune a model on a file of examples.
#pragma once

#include <functional>
#include <string>

#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/finetune/fine_tuning_options.h"
#include "onebit/training/training/session.h"

namespace onebit::finetune {

struct FineTuningArguments {
  commands::RecipeOptions recipe;
  std::string model, train, dev;
  bool skips_bad_records = false;
};

// --model, --train, --dev and --skip-bad-records; `train` and `dev` describe the content of the
// files.
void add_fine_tuning_options(commands::Command command, FineTuningArguments& given,
                             const std::string& train, const std::string& dev);

// Trains on all ranks. `complete` adds the other settings of the command line to the recipe.
int fine_tune(
    const FineTuningArguments& given,
    training::RunSummary (*train)(Context&, const FineTuningOptions&, comm::Communicator&),
    const std::function<void(Json& recipe)>& complete = [](Json& /*recipe*/) {});

}  // namespace onebit::finetune
