// Held-out evaluation of a model on the disk.
#pragma once

#include <optional>

#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"
#include "onebit/tasks/pretraining_held_out.h"

namespace onebit::tasks {

struct EvaluationTask {
  Path model;  // as find_model_folder() takes it
  Path data;   // token store
  // What is not given is the run's, where the model lies in a checkpoint of one; else the defaults
  // of a recipe.
  std::optional<int64_t> sequence_length, max_predictions;
  int64_t batch = 32;
  int64_t max_samples = 0;  // 0: all
};

// The same pairs and masks as the run's own evaluation, where nothing else is asked for. Errors: a
// store of another vocabulary, a model without pre-training heads.
HeldOutResult evaluate_model(Context& context, const EvaluationTask& task,
                             comm::Communicator& communicator);

}  // namespace onebit::tasks
