// Fine-tuning on labelled texts, from any BERT to an ordinary BertForSequenceClassification folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "onebit/apps/classify/classification_model.h"
#include "onebit/apps/classify/classify_config.h"
#include "onebit/apps/classify/labels.h"
#include "onebit/apps/classify/scores.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/fine_tuning_task.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::classify {

// Labelled examples on which the classifier is evaluated during training.
struct DevFile {
  Path path;
  // Prefix of the names of its metrics ("mismatched_accuracy"). Empty for the first file.
  std::string name;
};

struct ClassifyTrainingOptions : training::RunOptions {
  Path model;  // resolved by find_model_folder()
  Path train;
  std::vector<DevFile> dev;  // evaluated after each epoch and every run.evaluate_every steps
};

class ClassifyTask : public finetune::FineTuningTask<ClassifyConfig, ClassificationModel> {
 public:
  // Reads the recipe, the model's description and the examples, and encodes them with the context's
  // threads.
  ClassifyTask(Context& context, const ClassifyTrainingOptions& options,
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
  struct Dev {
    DevFile file;
    finetune::Examples examples;
    Targets targets;
    finetune::EncodedExamples encoded;
  };

  void open_train_data(const ClassifyTrainingOptions& options, int threads);
  finetune::EncodedExamples encoded(const finetune::Examples& examples, int threads);
  void choose_labels(const training::ClassifierDescription& checkpoint, bool is_classifier);
  void choose_metrics();
  void open_dev_data(const DevFile& file, int threads);
  std::vector<float> class_weights() const;
  finetune::DataIdentity identity() const override;
  std::unique_ptr<training::BatchSource> make_source(const training::StreamShare& share,
                                                     Json identity) override;

  bool keeps_head_ = false;  // the checkpoint's classifier has these labels
  finetune::Examples examples_;
  Targets targets_;
  std::unique_ptr<finetune::EncodedExamples> encoded_;
  std::vector<Dev> dev_;
  ScoreOptions score_options_;
  std::vector<Scores> scores_;  // of the last evaluation, by file
};

// A run leaves in its folder the best model by the recipe's metric (the last one without dev) as a
// Hugging Face folder, scores.json of dev, metrics.jsonl, TensorBoard events, checkpoints,
// recipe.json. Errors: what example_reader.h and labels.h list for the files, and others.
std::unique_ptr<training::Task> make_classify_task(Context& context,
                                                   const training::RunOptions& run,
                                                   const training::TaskInputs& inputs,
                                                   const training::Connection& connection);

// Batches of labelled texts, packed without padding.

// The examples of training: each once per epoch, in a new order in every epoch. Usable from any
// number of threads.
class ExampleStream {
 public:
  // Examples and targets must outlive it. Error: fewer examples than ranks. `source` names the
  // file.
  ExampleStream(const finetune::EncodedExamples& examples, const Targets& targets,
                const batches::DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. Single labels are its sequence_labels
  // [B], the numbers of other problems its sequence_values [B, outputs].
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const finetune::EncodedExamples& examples_;
  const Targets& targets_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
};

}  // namespace onebit::classify
