// What every training task shares: the tables, the steps, evaluations, checkpoints, being asked to
// end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/model/memory_report.h"
#include "onebit/training/rows.h"
#include "onebit/training/run_options.h"
#include "onebit/training/step_prediction.h"
#include "onebit/training/training_log.h"

namespace onebit::training {

// What the start-up table tells about a run.
struct StartFacts {
  const model::BertConfig& model;
  std::vector<model::MemoryRow> memory;  // without the optimizer's
  const params::Table& table;
  std::string sequences;       // "sequences of 128"
  Rows data;                   // what is trained and judged on
  std::string initial_values;  // where they come from
  const std::vector<std::string>& decisions;
  // Makes one forward and backward pass over a micro-batch and returns when it is done. Touches the
  // gradients, nothing else.
  std::function<PassTimes()> pass;
};

// One run in memory, a step at a time. All calls are collective.
class TrainingRun {
 public:
  virtual ~TrainingRun() = default;

  virtual engine::Engine& engine() = 0;
  virtual StartFacts facts() = 0;
  virtual bool resumed() const = 0;
  // Consumed by all ranks since the beginning of the run.
  virtual int64_t samples() const = 0;
  // One update on all ranks.
  virtual StepRecord train_step() = 0;
  // Whether an evaluation belongs behind this step, which has just been made, or was skipped and
  // consumed its samples only.
  virtual bool evaluation_is_due(const StepRecord& record) const = 0;
  virtual void evaluate_into(TrainingLog& log) = 0;
  virtual void save_checkpoint() = 0;
  // Returns when the last checkpoint is on the disk.
  virtual void wait_for_checkpoint() = 0;

  virtual DrawnMetric drawn() const { return {}; }

  // Around all steps.
  virtual void before_training(TrainingLog&) {}
  virtual void after_training(TrainingLog&) {}
  // What came of it, for the table at the end.
  virtual Rows results() const { return {}; }

  bool finished() { return engine().completed_steps() >= engine().config().run.steps; }
};

// Trains until the last step or until the process is asked to end (then a checkpoint is written and
// the log says so), and leaves metrics.jsonl, TensorBoard events and recipe.json in the folder of
// the run. An error of one rank is told to the others before it leaves here. Collective.
void run_training(Context& context, TrainingRun& run, const RunOptions& options,
                  comm::Communicator& communicator);

}  // namespace onebit::training
