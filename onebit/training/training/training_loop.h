// The loop over the steps of a run, with tables, evaluations, checkpoints and requests to end.
// One step is Session::train_step() (session.h): batches, passes and loss. Engine::step()
// (engine/engine.h) exchanges, clips and updates.
#pragma once

#include "onebit/training/training/session.h"

namespace onebit::training {

// Trains until the last step or until the process is asked to end (then a checkpoint is written and
// the end is logged), and leaves metrics.jsonl, TensorBoard events and recipe.json in the folder of
// the run. An error on one rank is announced to the others before it leaves this function.
// Collective.
RunSummary run_training(Context& context, Task& task, const RunOptions& options,
                        comm::Communicator& communicator);

}  // namespace onebit::training
