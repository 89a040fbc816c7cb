// The options of a training on a file of examples, from any BERT.
#pragma once

#include "onebit/base/file.h"
#include "onebit/training/run_options.h"

namespace onebit::tasks {

struct FineTuningOptions : training::RunOptions {
  Path model;  // as find_model_folder() takes it
  Path train;
  Path dev;  // evaluated at the times of the task (TaskFacts::evaluations); empty: there is none
};

}  // namespace onebit::tasks
