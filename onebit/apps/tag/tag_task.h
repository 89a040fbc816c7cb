// Fine-tuning on tagged sentences, from any BERT to an ordinary BertForTokenClassification folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/tag_config.h"
#include "onebit/apps/tag/tag_scores.h"
#include "onebit/apps/tag/tag_set.h"
#include "onebit/apps/tag/tagging_model.h"
#include "onebit/training/finetune/fine_tuning_command.h"
#include "onebit/training/finetune/fine_tuning_task.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::tag {

class TagTask : public finetune::FineTuningTask<TagConfig, TaggingModel> {
 public:
  // Reads the recipe, the model's description and the sentences, and encodes them with the
  // context's threads.
  TagTask(Context& context, const finetune::FineTuningOptions& options,
          const training::Connection& connection);

  void declare(ParameterTable& table) override;
  std::string fill(ParameterTable& table) override;

  training::Sums forward_backward(Context& context, const model::DeviceBatch& batch,
                                  const training::StepItems& items,
                                  const model::TrainingPass& pass) override;
  training::StepMetrics metrics(const training::StepSums& step) const override;

  training::Evaluation evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator) override;
  void write_beside_model(const Path& folder) const override;

 private:
  // Tagged sentences on which the tagger is evaluated during training.
  struct Dev {
    Sentences sentences;
    EvaluationTargets targets;
    EncodedSentences encoded;
  };

  void name_tags(const training::ModelDescription& checkpoint);
  void choose_labels(const training::ClassifierDescription& checkpoint, bool is_tagger);
  void open_train_data(int threads);
  void choose_metric();
  void open_dev_data(const Path& dev, int threads);
  EncodedSentences encoded(const Sentences& sentences, int threads) const;
  void report(const Sentences& sentences, const EncodedSentences& encoded);
  finetune::DataIdentity identity() const override;
  std::unique_ptr<training::BatchSource> make_source(const training::StreamShare& share,
                                                     Json identity) override;

  bool keeps_head_ = false;  // the checkpoint's classifier has these labels
  Sentences sentences_;
  Scheme scheme_ = Scheme::kPlain;  // of the labels
  std::vector<int32_t> targets_;    // [words]
  std::unique_ptr<EncodedSentences> encoded_;
  std::unique_ptr<Dev> dev_;
  Scores scores_;  // of the last evaluation
};

// A run leaves in its folder the best model by the recipe's metric (the last one without dev) as a
// Hugging Face folder, scores.json of dev, metrics.jsonl, TensorBoard events, checkpoints and
// recipe.json. Errors, among others, are in the files (conll_reader.h, json_reader.h, tag_set.h).
std::unique_ptr<training::Task> make_tag_task(Context& context, const training::RunOptions& run,
                                              const training::TaskInputs& inputs,
                                              const training::Connection& connection);

}  // namespace onebit::tag
