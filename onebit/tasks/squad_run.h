// One SQuAD run in memory: data, model, engine and checkpoints, a step at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/span_stream.h"
#include "onebit/engine/checkpoint.h"
#include "onebit/tasks/squad_config.h"
#include "onebit/tasks/squad_dev.h"
#include "onebit/tasks/squad_training.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/training_loop.h"

namespace onebit::tasks {

class SquadRun : public training::TrainingRun {
 public:
  SquadRun(Context& context, const SquadTrainingOptions& options, comm::Communicator& communicator);

  engine::Engine& engine() override { return *engine_; }
  training::StartFacts facts() override;
  training::StepRecord train_step() override;
  // At the end of each epoch, and of the run; not twice for the same values.
  bool evaluation_is_due(const training::StepRecord& record) const override;
  void evaluate_into(training::TrainingLog& log) override;
  void save_checkpoint() override;
  void wait_for_checkpoint() override { checkpoints_.wait(); }

  bool resumed() const override { return resumed_; }
  // Windows.
  int64_t samples() const override { return samples_; }
  training::Rows results() const override;
  const std::optional<BestSquadModel>& best() const { return best_; }

 private:
  void open_data(const SquadTrainingOptions& options);
  void choose_steps();
  void plan_memory();
  void restore(const SquadTrainingOptions& options);
  void choose_best(bool taken_back);
  void resume(const engine::SavedCheckpoint& saved);
  std::function<training::PassTimes()> measured_pass();
  // Writes the model into the run's folder; rank 0 alone.
  void keep_model();

  Context& context_;
  comm::Communicator& communicator_;
  Json recipe_;
  Path output_;
  SquadConfig config_;
  training::ModelDescription description_;
  data::SquadDataset train_data_;
  std::unique_ptr<data::SquadFeatures> train_features_;
  std::unique_ptr<SquadDev> dev_;
  params::Table table_;
  std::unique_ptr<model::QuestionAnsweringModel> model_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<data::SpanStream> stream_;
  std::optional<training::DeviceBatchBuffer> buffer_;
  engine::Checkpoints checkpoints_;
  std::vector<model::MemoryRow> memory_;
  data::SpanBatch batch_;
  int64_t samples_ = 0;
  int64_t evaluated_step_ = 0;
  bool resumed_ = false;
  std::optional<BestSquadModel> best_;
  std::string initial_values_;
  training::Rows data_rows_;
  std::vector<std::string> decisions_;
};

}  // namespace onebit::tasks
