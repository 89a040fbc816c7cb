// Fine-tuning on SQuAD, from any BERT to an ordinary question-answering folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/apps/squad/answerer.h"
#include "onebit/apps/squad/squad_config.h"
#include "onebit/training/finetune/fine_tuning_command.h"
#include "onebit/training/finetune/fine_tuning_task.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::squad {

class SquadTask : public finetune::FineTuningTask<SquadConfig, QuestionAnsweringModel> {
 public:
  // Reads the recipe, the model's description and the questions, and builds their windows with the
  // context's threads.
  SquadTask(Context& context, const finetune::FineTuningOptions& options,
            const training::Connection& connection);

  void declare(ParameterTable& table) override;
  std::string fill(ParameterTable& table) override;

  training::Sums forward_backward(Context& context, const model::DeviceBatch& batch,
                                  const training::StepItems& items,
                                  const model::TrainingPass& pass) override;
  training::StepMetrics metrics(const training::StepSums& step) const override;

  training::Evaluation evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator) override;
  std::string describe(const std::vector<metrics::Metric>& record) const override;
  void write_beside_model(const Path& folder) const override;

 private:
  // The questions on which the model is evaluated during training.
  struct Dev {
    Dataset questions, answered;
    DecodeOptions decode;
    std::unique_ptr<Features> features;  // of `questions`
    std::vector<DecodedAnswer> answers;  // of the last evaluation, on rank 0
  };

  void open_train_data(const Path& path, int threads, bool is_first);
  void open_dev_data(const Path& path, int threads, bool is_first);
  finetune::DataIdentity identity() const override;
  std::unique_ptr<training::BatchSource> make_source(const training::StreamShare& share,
                                                     Json identity) override;

  Dataset train_data_;
  std::unique_ptr<Features> train_features_;
  std::unique_ptr<Dev> dev_;
};

// A run leaves in its folder the best model by F1 (the last one without dev) as a Hugging Face
// folder, its predictions.json, nbest_predictions.json and (version 2.0) null_odds.json on dev,
// metrics.jsonl, TensorBoard events, checkpoints, recipe.json. Error, among others: no question of
// the file can be used.
std::unique_ptr<training::Task> make_squad_task(Context& context, const training::RunOptions& run,
                                                const training::TaskInputs& inputs,
                                                const training::Connection& connection);

}  // namespace onebit::squad
