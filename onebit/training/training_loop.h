// The steps of a run with all that happens around them: tables, evaluations, checkpoints, being
// asked to end.
#pragma once

#include "onebit/training/session.h"

namespace onebit::training {

// Trains until the last step or until the process is asked to end (then a checkpoint is written and
// the log says so), and leaves metrics.jsonl, TensorBoard events and recipe.json in the folder of
// the run. An error of one rank is told to the others before it leaves here. Collective.
RunSummary run_training(Context& context, Task& task, const RunOptions& options,
                        comm::Communicator& communicator);

}  // namespace onebit::training
