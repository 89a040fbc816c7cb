// Fine-tuning of a BERT whose vectors of texts are compared, from any BERT to a folder that
// sentence-transformers opens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/embed/embed_config.h"
#include "onebit/apps/embed/embed_scores.h"
#include "onebit/apps/embed/embedding_model.h"
#include "onebit/apps/embed/example_reader.h"
#include "onebit/apps/embed/losses.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/fine_tuning_command.h"
#include "onebit/training/finetune/fine_tuning_task.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::embed {

// A sample is an example of two or three texts. Pairs and triplets are trained with a ranking loss
// (losses.h) among the texts of a micro-step of all ranks, scored pairs with a loss on
// their cosine (losses.h).
class EmbedTask : public finetune::FineTuningTask<EmbedConfig, EmbeddingModel> {
 public:
  // Reads the recipe, the model's description and the examples, and encodes them with the context's
  // threads. Collective.
  EmbedTask(Context& context, const finetune::FineTuningOptions& options,
            const training::Connection& connection);

  void declare(ParameterTable& table) override;
  std::string fill(ParameterTable& table) override;

  training::Sums forward_backward(Context& context, const model::DeviceBatch& batch,
                                  const training::StepItems& items,
                                  const model::TrainingPass& pass) override;
  void join_pass(const model::TrainingPass& pass) override;
  training::StepMetrics metrics(const training::StepSums& step) const override;

  training::Evaluation evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator) override;
  void write_beside_model(const Path& folder) const override;

 private:
  // Examples on which the vectors are evaluated during training.
  struct Dev {
    Examples examples;
    finetune::EncodedExamples encoded;
  };

  void describe_vectors(const Path& folder);
  finetune::EncodedExamples encoded(const Examples& examples, int threads);
  void open_train_data(int threads);
  void open_dev_data(const Path& dev, int threads);
  void choose_metric();
  void prepare_ranking(const training::StreamShare& share);
  finetune::DataIdentity identity() const override;
  std::unique_ptr<training::BatchSource> make_source(const training::StreamShare& share,
                                                     Json identity) override;
  bool is_ranked() const { return examples_.kind != Kind::kScored; }
  // The vectors of a micro-step of all ranks, and the range of this rank's examples in them.
  struct Gathered {
    ConstView vectors;
    Range own;
  };
  Gathered gather(ConstView vectors, int64_t micro_step);
  // Both compute the gradient of a micro-batch's vectors and return the sums that metrics() takes.
  training::Sums rank(const Gathered& gathered, double gradient_scale, View gradients);
  static training::Sums compare(ConstView vectors, ConstView scores, double gradient_scale,
                                View gradients);

  Examples examples_;
  std::unique_ptr<finetune::EncodedExamples> encoded_;
  std::unique_ptr<Dev> dev_;
  Scores scores_;  // of the last evaluation
  // Gathers the vectors of all ranks, separate from the exchange of gradients.
  std::unique_ptr<comm::Communicator> communicator_;
  Context host_;
  std::optional<RankingLoss> ranking_;
  batches::StepParts step_parts_;
  Tensor all_vectors_;  // f32 [texts of the largest micro-step of all ranks, hidden]
};

// A run leaves in its folder the best model by the recipe's metric (the last one without dev) as a
// folder of sentence-transformers, scores.json of dev, metrics.jsonl, TensorBoard events,
// checkpoints, recipe.json. Errors, among others: the same as of embed::read_examples().
std::unique_ptr<training::Task> make_embed_task(Context& context, const training::RunOptions& run,
                                                const training::TaskInputs& inputs,
                                                const training::Connection& connection);

// Batches of examples, packed without padding. Every text is a sequence of its own.

// Training: every example once per epoch, in a new order each. Usable from any number of threads.
class ExampleStream {
 public:
  // Both must outlive it. `encoded` are the texts of `examples`. Error: fewer examples than ranks.
  ExampleStream(const finetune::EncodedExamples& encoded, const Examples& examples,
                const batches::DealOptions& options);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. The texts of an example are consecutive
  // sequences. The sequence_values of scored pairs are their scores [examples].
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const finetune::EncodedExamples& encoded_;
  const Examples& examples_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
  int64_t longest_;  // the most tokens of an example
};

}  // namespace onebit::embed
