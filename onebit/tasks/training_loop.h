// The loop that every training task shares: steps, evaluations, checkpoints, being asked to end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/model/memory_plan.h"
#include "onebit/tasks/training_log.h"

namespace onebit::tasks {

// What the start-up table tells about a run.
struct RunFacts {
  const model::BertConfig& model;
  const model::MemoryOptions& memory;
  model::BatchLimits limits;  // the largest micro-batch the model is planned for
  const params::Table& table;
  std::string sequences;  // "sequences of 128"
  const std::vector<std::string>& decisions;
  // How long the forward and backward passes of one step take here, from one micro-batch. Touches
  // the gradients, nothing else.
  std::function<double()> measure_compute_seconds;
};

// One run in memory, a step at a time. All calls are collective.
class TrainingRun {
 public:
  virtual ~TrainingRun() = default;

  virtual engine::Engine& engine() = 0;
  virtual RunFacts facts() = 0;
  // One update on all ranks.
  virtual StepRecord train_step() = 0;
  // Whether an evaluation belongs behind update `step`, which has just been made.
  virtual bool evaluation_is_due(int64_t step) const = 0;
  virtual void evaluate_into(TrainingLog& log) = 0;
  virtual void save_checkpoint() = 0;
  // Returns when the last checkpoint is on the disk.
  virtual void wait_for_checkpoint() = 0;

  bool finished() { return engine().completed_steps() >= engine().config().run.steps; }
};

// Trains until the last step or until the process is asked to end (then a checkpoint is written and
// the log says so).
void train(TrainingRun& run, TrainingLog& log, comm::Communicator& communicator);

}  // namespace onebit::tasks
