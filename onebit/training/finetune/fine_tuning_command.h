// Shared by the commands that fine-tune a model on a file of examples.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/key_options.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::finetune {

struct FineTuningArguments {
  commands::RecipeOptions recipe;
  std::string model, train, dev;
};

// --model, --train, --dev. `train` and `dev` describe the content of the files.
void add_fine_tuning_options(commands::Command command, FineTuningArguments& given,
                             const std::string& train, const std::string& dev);

// Trains on all ranks.
int fine_tune(const FineTuningArguments& given, training::MakeTask make);

// The options of a training on a file of examples, starting from any BERT.
struct FineTuningOptions : training::RunOptions {
  Path model;  // resolved by find_model_folder()
  Path train;
  Path dev;  // evaluated at the times of the task (TaskFacts::evaluations). It may be empty
};

// Error: there is no model, or not one training file, or more than one dev file.
FineTuningOptions options_of(const training::RunOptions& run, const training::TaskInputs& inputs);
// Error: there is no model, or not one training file.
void require_one_file(const training::TaskInputs& inputs);

// Options of commands that read TSV, CSV or JSON lines.

// --format, --header, --no-header.
void add_record_file_options(const commands::KeyOptions& keys);

// --skip-bad-records, of commands that train or are evaluated on files of records.
void add_skip_bad_records(const commands::KeyOptions& keys);

// Logs a warning if some of the `texts` texts of a file were cut.
void warn_of_truncation(const std::string& file, int64_t cut, int64_t texts);

}  // namespace onebit::finetune
