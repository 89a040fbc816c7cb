// The options of a training on a file of examples, starting from any BERT.
#pragma once

#include "onebit/ground/base/file.h"
#include "onebit/training/training/run_options.h"

namespace onebit::finetune {

struct FineTuningOptions : training::RunOptions {
  Path model;  // resolved by find_model_folder()
  Path train;
  Path dev;  // evaluated at the times of the task (TaskFacts::evaluations); may be empty
};

}  // namespace onebit::finetune
