// The loop over the steps of a run, with tables, evaluations, checkpoints and requests to end.
// One step is Session::train_step() (session.h): batches, passes and loss. Engine::step()
// (engine/engine.h) exchanges, clips and updates.
#pragma once

#include "onebit/training/training/session.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::training {

// Trains until the last step or until the process is asked to end (then a checkpoint is written and
// the end is logged), and leaves metrics.jsonl, TensorBoard events and recipe.json in the folder of
// the run. An error on one rank is announced to the others before it leaves this function.
// Collective.
RunSummary run_training(Context& context, Task& task, const RunOptions& options,
                        comm::Communicator& communicator);

// Makes the task with `make`, its recipe read for the context's device, and trains it. Collective.
// Error: options.output contains a run, and resume was not requested.
RunSummary make_and_train(Context& context, MakeTask make, const RunOptions& options,
                          const TaskInputs& inputs, const Connection& connection);

}  // namespace onebit::training
