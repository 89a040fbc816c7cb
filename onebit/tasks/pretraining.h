// BERT pre-training from token stores to checkpoints.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"
#include "onebit/tasks/held_out.h"
#include "onebit/training/run_options.h"

namespace onebit::tasks {

struct PretrainingOptions : training::RunOptions {
  // Token stores and their weights in the mixture (all 0: by size).
  std::vector<std::pair<Path, double>> data;
  std::optional<Path> valid;
  std::optional<Path> initialize_from;  // a model whose values are the first ones
};

struct PretrainingSummary {
  int64_t steps = 0, samples = 0;
  std::optional<HeldOutResult> before, after;
};

// Trains until `run.steps` and writes checkpoints, metrics.jsonl, TensorBoard events and the
// resolved recipe into `output`. Every rank calls it with the same options. Errors, among others:
// `output` holds a run and neither resume was asked for nor is it another folder; the recipe does
// not fit the checkpoint.
PretrainingSummary run_pretraining(Context& context, const PretrainingOptions& options,
                                   comm::Communicator& communicator);

}  // namespace onebit::tasks
