// BERT pre-training from token stores to checkpoints.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/apps/pretrain/pretraining_data.h"
#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/training/training/session.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::pretrain {

// A held-out token store.
struct HeldOutData {
  std::string name;  // in logs and reports, may be empty if there is only one
  Path folder;
};

struct PretrainingOptions : training::RunOptions {
  // Token stores and their weights in the mixture (all 0: by size).
  std::vector<std::pair<Path, double>> data;
  // The first one is of the domain that the run learns. The others show what it forgets.
  std::vector<HeldOutData> valid;
  std::optional<Path> initialize_from;  // a model with the initial values
};

class PretrainingTask : public training::Task {
 public:
  // Opens the token stores and reads the recipe, for which it reads the description of the model
  // that the run starts from or resumes with. The ranks of `connection` outlive the task.
  PretrainingTask(const PretrainingOptions& options, const training::Connection& connection);

  const engine::EngineConfig& config() const override { return config_.engine; }
  const training::SessionConfig& session_config() const override { return config_.session; }
  const training::ModelDescription& description() const override { return description_; }

  void declare(ParameterTable& table) override;
  std::unique_ptr<training::BatchSource> open(const training::StreamShare& share,
                                              const Json* saved) override;
  model::MemoryPlan plan(Context& context, const model::BatchLimits& limits) override;
  std::string fill(ParameterTable& table) override;

  training::Sums forward_backward(Context& context, const model::DeviceBatch& batch,
                                  const training::StepItems& items,
                                  const model::TrainingPass& pass) override;
  training::StepMetrics metrics(const training::StepSums& step) const override;

  training::Evaluation evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator) override;
  std::string describe(const std::vector<metrics::Metric>& record) const override;
  std::string describe_change(const std::vector<metrics::Metric>& before,
                              const std::vector<metrics::Metric>& after) const override;

  training::ComputedLayers computed_layers(int64_t from, int64_t to) const override;

 private:
  // The model on disk that the run starts from or resumes with.
  struct Start {
    Path folder;
    bool resumed = false;  // it is the run's own
    training::ModelDescription description;
  };
  struct HeldOut {
    std::string name;
    std::unique_ptr<batches::EvaluationStream> stream;
  };

  static std::optional<Start> find_start(const PretrainingOptions& options);
  PretrainingConfig read_recipe() const;
  void require_own_run() const;
  training::ModelDescription describe_model() const;
  finetune::VocabularyOwner vocabulary_owner() const;
  // Errors and warnings of epoch_check.h.
  void check_epoch(const std::vector<batches::EpochFigures>& figures, const Json* saved);
  // Reports what has changed since the run saved its state.
  void report_changes(const Json& saved);
  // Opens the data evaluated before the first step, every run.evaluate_every steps and at the end.
  void open_held_out_data(int threads);
  const std::string& first_name() const { return options_.valid.front().name; }

  PretrainingOptions options_;
  Stores stores_;
  std::optional<Start> start_;
  PretrainingConfig config_;
  comm::Communicator& communicator_;
  training::ModelDescription description_;
  std::unique_ptr<model::PreTrainingModel> model_;
  std::vector<float> layer_factors_;  // of the pass. Empty without layer drop
  std::vector<HeldOut> held_out_;
};

// A run leaves in its folder checkpoints, metrics.jsonl, TensorBoard events and the resolved
// recipe.
std::unique_ptr<training::Task> make_pretraining_task(Context& context,
                                                      const training::RunOptions& run,
                                                      const training::TaskInputs& inputs,
                                                      const training::Connection& connection);

}  // namespace onebit::pretrain
