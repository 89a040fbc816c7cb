// One training run in memory, whatever its task: table, engine, batches ahead of the step,
// evaluations, best model, checkpoints. The task (task.h) says only what differs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/prefetch.h"
#include "onebit/engine/checkpoint.h"
#include "onebit/model/memory_report.h"
#include "onebit/training/best_model.h"
#include "onebit/training/checkpoint_space.h"
#include "onebit/training/run_options.h"
#include "onebit/training/step_prediction.h"
#include "onebit/training/task.h"
#include "onebit/training/training_log.h"

namespace onebit::training {

// What the start table reports about a run.
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
  AnnouncingPass pass;
};

// What came of a run.
struct RunSummary {
  int64_t steps = 0, samples = 0;
  // `before` evaluates the first values, `after` the last. Both are empty without evaluations,
  // `before` in a resumed run, `after` in one that was asked to end.
  std::optional<Evaluation> before, after;
  std::optional<KeptModel> best;
};

// All calls are collective.
class Session {
 public:
  // Opens the task's batches, reserves all memory, and sets the first values or resumes. `task`
  // must outlive the session. Errors: those of the task; a checkpoint of another model or
  // vocabulary.
  Session(Context& context, Task& task, const RunOptions& options,
          comm::Communicator& communicator);

  engine::Engine& engine() { return *engine_; }
  const Task& task() const { return task_; }
  // The recipe as the run stores it: as given, with the name of the task unless that is the
  // default.
  const Json& recipe() const { return recipe_; }
  StartFacts facts();
  bool resumed() const { return resumed_; }
  // Consumed by all ranks since the beginning of the run.
  int64_t samples() const { return samples_; }
  bool finished() const;

  // One update on all ranks.
  StepRecord train_step();
  // Whether an evaluation belongs behind this step, which has just been made, or was skipped and
  // consumed its samples only. Not twice for the same values.
  bool evaluation_is_due(const StepRecord& record) const;
  // Evaluates the values as they are and logs it; keeps the model where it is the best so far.
  void evaluate_into(TrainingLog& log);
  void save_checkpoint();
  // Who shares the disk on which the run's folder lies.
  const engine::Disks& disks() const { return checkpoints_.disks(); }
  // Whether this rank writes what is in the run's folder once.
  bool leads_disk() const { return checkpoints_.disks().leads(communicator_.rank()); }
  // What checkpoints take on this rank's disk.
  CheckpointSpace checkpoint_space();
  // Returns when the last checkpoint is on the disk.
  void wait_for_checkpoint() { checkpoints_.wait(); }

  // Around all steps: the evaluations of the first values, and of the last where a resumed run had
  // no step left to make.
  void before_training(TrainingLog& log);
  void after_training();

  // What came of it, for the table at the end.
  Rows results() const;
  RunSummary summary() const;

 private:
  using StepBatches = std::vector<std::unique_ptr<HostBatch>>;

  // Of the shards of a checkpoint, the part that this rank's disk keeps.
  double share_of_disk() const;
  // What is copied of values and state while a checkpoint or the best model is written.
  int64_t copied_bytes();
  void open(const engine::SavedCheckpoint* saved);
  std::string describe_disks() const;
  void plan_memory();
  void restore(const RunOptions& options, const engine::SavedCheckpoint* saved);
  void resume(const engine::SavedCheckpoint& saved, const RunOptions& options);
  void start_prefetch();
  // Over a batch that is like those of the steps to come. Collective.
  AnnouncingPass measured_pass();
  // Fills step_batches_; returns what the losses of this step are means over.
  StepItems fetch_step(StepRecord& record);
  model::DeviceBatch upload(const HostBatch& batch);
  Sums run_micro_steps(const StepItems& items, StepRecord& record);
  Evaluation evaluate();
  ModelCard card() const;
  void keep(const Evaluation& evaluation);

  Context& context_;
  Task& task_;
  comm::Communicator& communicator_;
  Json recipe_;
  params::Table table_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<BatchSource> source_;
  std::optional<DeviceBatchBuffer> buffer_;
  engine::Checkpoints checkpoints_;
  BestModel best_;
  std::vector<model::MemoryRow> memory_;
  int64_t samples_ = 0;
  int64_t evaluated_step_ = 0;
  bool resumed_ = false;
  std::optional<Evaluation> before_, after_, last_;  // last_: at evaluated_step_
  std::string initial_values_;  // of this process: a resumed run has those of its checkpoint
  std::string first_values_;    // of the whole run, as its checkpoints keep them
  std::vector<std::string> decisions_;
  StepBatches step_batches_;  // [accumulation]
  // Last: it uses the source.
  std::unique_ptr<data::Prefetcher<std::unique_ptr<HostBatch>>> prefetcher_;
};

}  // namespace onebit::training
