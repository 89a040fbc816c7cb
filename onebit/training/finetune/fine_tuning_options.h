// The options of a training on a file of examples, starting from any BERT.
#pragma once

#include "onebit/ground/base/file.h"
#include "onebit/training/training/run_options.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::finetune {

struct FineTuningOptions : training::RunOptions {
  Path model;  // resolved by find_model_folder()
  Path train;
  Path dev;  // evaluated at the times of the task (TaskFacts::evaluations); may be empty
};

// Error: there is no model, or not one training file, or more than one dev file.
FineTuningOptions options_of(const training::RunOptions& run, const training::TaskInputs& inputs);
// Error: there is no model, or not one training file.
void require_one_file(const training::TaskInputs& inputs);

}  // namespace onebit::finetune
