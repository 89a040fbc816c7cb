// Predicts one label per word: Hugging Face's BertForTokenClassification and its
// relatives.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/math/model/bert.h"
#include "onebit/math/model/label_counter.h"
#include "onebit/math/model/pooler.h"
#include "onebit/math/model/sequence_classifier.h"

namespace onebit::tag {

struct TaggerHead {
  int64_t outputs = 2;
  std::optional<double> dropout = {};  // absent: the encoder's hidden dropout
};

// The labelled rows of a batch are the words. Only they pass through the last layer's feed-forward
// part and the classifier: the outputs of other rows are not needed.
class TaggingModel {
 public:
  // The encoder, "classifier" and, if any, the layer before it. `table` must stay where it is.
  TaggingModel(const model::EncoderConfig& config, const TaggerHead& head, ParameterTable& table);

  const model::EncoderConfig& config() const { return bert_.config(); }
  int64_t outputs() const { return head_.outputs; }

  // As in PreTrainingModel.
  model::MemoryPlan plan(Context& context, const model::BatchLimits& limits,
                         const model::MemoryOptions& memory, bool training);

  struct Result {
    double loss_sum = 0;
    int64_t words = 0, correct = 0;  // words: rows whose label is not -1
  };
  // loss = weight * sum over labelled rows of the cross-entropy with their labels. The table's
  // gradients as in training_pass.h.
  Result forward_backward(Context& context, const model::DeviceBatch& batch, double weight,
                          const model::TrainingPass& pass);
  Result evaluate(Context& context, const model::DeviceBatch& batch);
  // Returns the logits of labelled rows, f32 [labelled, outputs] on the CPU. Labels are not read.
  Tensor predict(Context& context, const model::DeviceBatch& batch);

 private:
  // Returns what the classifier reads, for the encoder's result.
  ConstView before_labels(Context& context, ConstView hidden) const;
  Result run(Context& context, const model::DeviceBatch& batch, double weight,
             const model::TrainingPass* pass);

  model::Bert bert_;
  Range head_range_;
  TaggerHead head_;
  std::optional<model::Pooler> dense_;
  model::SequenceClassifier classifier_;
  model::ClassifierDropout dropout_;
  Tensor grad_pooled_;  // [labelled, hidden], with that layer
  model::LabelCounter counter_;
};

}  // namespace onebit::tag
