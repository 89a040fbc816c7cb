// Held-out evaluation of a model on the disk.
#pragma once

#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"
#include "onebit/tasks/held_out.h"

namespace onebit::tasks {

struct EvaluationTask {
  Path model;  // as find_model_folder() takes it
  Path data;   // token store
  int64_t sequence_length = 128;
  int64_t batch = 32;
  int64_t max_samples = 0;  // 0: all
};

// The same samples, pairs and masks as during training, where the sequence length is the same.
// Errors: a store of another vocabulary, a model without pre-training heads.
HeldOutResult evaluate_model(Context& context, const EvaluationTask& task,
                             comm::Communicator& communicator);

}  // namespace onebit::tasks
