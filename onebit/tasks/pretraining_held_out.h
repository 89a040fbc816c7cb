// Held-out loss and accuracy of a pre-training model.
#pragma once

#include <memory>

#include "onebit/comm/communicator.h"
#include "onebit/data/evaluation_stream.h"
#include "onebit/model/pretraining_model.h"
#include "onebit/training/device_batch.h"
#include "onebit/training/evaluation.h"

namespace onebit::tasks {

// Means over all held-out samples.
struct HeldOutResult {
  double mlm_loss = 0, mlm_accuracy = 0;
  double nsp_loss = 0, nsp_accuracy = 0;
  int64_t samples = 0, masked = 0;
  double seconds = 0;

  double loss() const { return mlm_loss + nsp_loss; }
};

// The same figures by name.
training::Evaluation to_evaluation(const HeldOutResult& result);

// Evaluates batches of this rank; every rank ends with the sums over all ranks. The model must be
// planned for the stream's bounds. Collective.
HeldOutResult evaluate_held_out(Context& context, model::PreTrainingModel& model,
                                data::EvaluationStream& stream, training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator);

}  // namespace onebit::tasks
