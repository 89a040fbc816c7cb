// One pre-training run in memory: data, model, engine and checkpoints, a step at a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "onebit/data/prefetch.h"
#include "onebit/engine/checkpoint.h"
#include "onebit/tasks/pretraining.h"
#include "onebit/tasks/pretraining_data.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/training_loop.h"

namespace onebit::tasks {

class PretrainingRun : public training::TrainingRun {
 public:
  PretrainingRun(Context& context, const PretrainingOptions& options,
                 comm::Communicator& communicator);

  engine::Engine& engine() override { return *engine_; }
  training::StartFacts facts() override;
  bool resumed() const override { return resumed_; }
  int64_t samples() const override { return samples_; }
  // Of the first values and of the last; empty without held-out data, in a resumed run and in one
  // that was asked to end.
  const std::optional<HeldOutResult>& before() const { return before_; }
  const std::optional<HeldOutResult>& after() const { return after_; }

  training::StepRecord train_step() override;
  bool evaluation_is_due(const training::StepRecord& record) const override;
  void evaluate_into(training::TrainingLog& log) override;
  training::DrawnMetric drawn() const override { return {.name = "mlm_loss", .title = "MLM loss"}; }
  void before_training(training::TrainingLog& log) override;
  void after_training(training::TrainingLog& log) override;
  training::Rows results() const override;
  void save_checkpoint() override;
  void wait_for_checkpoint() override { checkpoints_.wait(); }

 private:
  void open_data(const PretrainingOptions& options, const engine::SavedCheckpoint* saved);
  void plan_memory();
  void restore(const PretrainingOptions& options, const engine::SavedCheckpoint* saved);
  void resume(const engine::SavedCheckpoint& saved, const PretrainingOptions& options);
  std::function<training::PassTimes()> measured_pass();
  // Empty without held-out data. Collective.
  std::optional<HeldOutResult> evaluate();
  void start_prefetch();
  // Fills step_batches_; returns the masked tokens of this step over all ranks.
  int64_t fetch_step();

  Context& context_;
  comm::Communicator& communicator_;
  Json recipe_;
  Stores stores_;
  training::ModelDescription description_;
  PretrainingConfig config_;
  params::Table table_;
  std::unique_ptr<model::PreTrainingModel> model_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<data::BatchStream> stream_;
  std::unique_ptr<data::EvaluationStream> held_out_;
  std::optional<training::DeviceBatchBuffer> buffer_;
  engine::Checkpoints checkpoints_;
  std::vector<model::MemoryRow> memory_;
  int64_t samples_ = 0;
  bool resumed_ = false;
  std::string initial_values_;
  double data_seconds_ = 0;
  std::optional<HeldOutResult> before_, after_;
  std::vector<std::string> decisions_;
  training::Rows data_rows_;
  std::vector<data::Batch> step_batches_;         // [accumulation]
  std::unique_ptr<data::Prefetcher> prefetcher_;  // last: it uses the stream
};

}  // namespace onebit::tasks
