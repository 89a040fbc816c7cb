// One training run in memory, the same for every task: table, engine, prefetched batches,
// evaluations, best model, checkpoints. The task (task.h) supplies only the parts that differ.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/batches/prefetch.h"
#include "onebit/exchange/checkpoint/checkpoint.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/training/costs/step_prediction.h"
#include "onebit/training/training/best_model.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/task.h"
#include "onebit/training/training/task_inputs.h"
#include "onebit/training/training/training_log.h"

namespace onebit::training {

// What the start table reports about a run.
struct StartFacts {
  const model::EncoderConfig& model;
  std::vector<model::MemoryRow> memory;  // without the optimizer's
  const ParameterTable& table;
  std::string sequences;       // "sequences of 128"
  Rows data;                   // of training and evaluation
  std::string initial_values;  // a description of their origin
  const std::vector<std::string>& decisions;
  // Runs one forward and backward pass over a micro-batch and returns when it is done. Changes only
  // the gradients.
  costs::AnnouncingPass pass;
};

// The outcome of a run.
struct RunSummary {
  int64_t steps = 0, samples = 0;
  bool finished = false;  // false: the run was asked to end before its last step
  // `before` is the evaluation of the initial values, `after` of the final ones. Both are empty
  // without evaluations. `before` is empty in a resumed run, `after` in an interrupted one.
  std::optional<Evaluation> before, after;
  std::optional<KeptModel> best;
};

// All calls are collective.
class Session {
 public:
  // Opens the task's batches, reserves all memory, and sets the first values or resumes. `task`
  // must outlive the session. Errors: what the task throws, or a checkpoint of another model or
  // vocabulary.
  Session(Context& context, Task& task, const RunOptions& options,
          comm::Communicator& communicator);

  engine::Engine& engine() { return *engine_; }
  const Task& task() const { return task_; }
  // The recipe as the run stores it: as given, with the name of the task unless that is the
  // default.
  const Json& recipe() const { return recipe_; }
  // What the start table says. Measures a pass, which takes seconds. Collective.
  StartFacts start_facts();
  bool resumed() const { return resumed_; }
  // Samples that all ranks have consumed since the beginning of the run.
  int64_t samples() const { return samples_; }
  bool finished() const;

  // One update on all ranks.
  StepRecord train_step();
  // Whether an evaluation follows this step, which was just completed or skipped (a skipped step
  // only consumes its samples). False if the current values have been evaluated already.
  bool evaluation_is_due(const StepRecord& record) const;
  // Evaluates the current values and logs the result. It keeps the model if it is the best so far.
  void evaluate_into(TrainingLog& log);
  void save_checkpoint();
  // Which ranks see the same folder of the run.
  const checkpoint::Disks& disks() const { return checkpoints_.disks(); }
  // Whether this rank writes the files that exist once per disk.
  bool leads_disk() const { return checkpoints_.disks().leads(communicator_.rank()); }
  // The space that checkpoints take on this rank's disk.
  CheckpointSpace checkpoint_space();
  // Returns when the last checkpoint is on disk.
  void wait_for_checkpoint() { checkpoints_.wait(); }

  // Called before and after all steps: evaluate the initial values, and the final ones if a resumed
  // run had no steps left. Such a run also keeps its model if the folder's is not the best so far.
  void before_training(TrainingLog& log);
  void after_training(TrainingLog& log);

  // The outcome of the run, for the end table.
  Rows results() const;
  RunSummary summary() const;

 private:
  // The fraction of a checkpoint's shards that this rank's disk stores.
  double share_of_disk() const;
  // Bytes of values and state that are copied while a checkpoint or the best model is written.
  int64_t copied_bytes();
  void require_same_start(const RunOptions& options);
  void require_same_data();
  void open(const checkpoint::SavedCheckpoint* saved);
  Json state_of_source(int64_t samples);
  void plan_memory();
  void restore(const RunOptions& options, const checkpoint::SavedCheckpoint* saved);
  void resume(const checkpoint::SavedCheckpoint& saved, const RunOptions& options);
  // An empty batch with memory reserved for the largest.
  batches::Batch make_batch() const;
  void start_prefetch();
  // Runs over a batch that is typical of the steps to come. Collective.
  costs::AnnouncingPass measured_pass();
  // Fills step_batches_, and returns the counts over which the losses of this step are averaged.
  StepItems fetch_step(StepRecord& record);
  model::DeviceBatch upload(const batches::Batch& batch);
  // Returns empty sums where the batch has no sample.
  Sums run_pass(const batches::Batch& batch, const StepItems& items,
                const model::TrainingPass& pass);
  Sums run_micro_steps(const StepItems& items, StepRecord& record);
  Evaluation evaluate();
  ModelCard card() const;
  void keep(const Evaluation& evaluation);
  // Without evaluations, the last model is the run's.
  bool keeps_last() const {
    return !task_.facts().kept_by.metric.empty() && !task_.facts().evaluations.any();
  }
  void keep_last();

  Context& context_;
  Task& task_;
  comm::Communicator& communicator_;
  Json recipe_;
  ParameterTable table_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<BatchSource> source_;
  std::optional<DeviceBatchBuffer> buffer_;
  checkpoint::Checkpoints checkpoints_;
  BestModel best_;
  std::vector<model::MemoryRow> memory_;
  int64_t samples_ = 0;
  int64_t evaluated_step_ = 0;
  bool resumed_ = false, held_out_changed_ = false;
  bool had_no_steps_ = false;                        // it was finished when it resumed
  std::optional<Evaluation> before_, after_, last_;  // last_: at evaluated_step_
  std::string initial_values_;  // of this process: a resumed run has its checkpoint's
  std::string first_values_;    // of the whole run, as its checkpoints keep them
  std::vector<std::string> decisions_;
  std::vector<batches::Batch> step_batches_;  // [accumulation]
  // Declared last because it uses the source.
  std::unique_ptr<batches::Prefetcher<batches::Batch>> prefetcher_;
};

}  // namespace onebit::training
