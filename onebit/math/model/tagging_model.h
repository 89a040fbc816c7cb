// Predicts one label per word: Hugging Face's BertForTokenClassification.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/math/model/bert.h"
#include "onebit/math/model/classifier_dropout.h"
#include "onebit/math/model/label_counter.h"
#include "onebit/math/model/sequence_classifier.h"

namespace onebit::model {

struct TaggerHead {
  int64_t outputs = 2;
  std::optional<double> dropout = {};  // absent: the encoder's hidden dropout
};

// The labelled rows of a batch are the words. Only they pass through the last layer's feed-forward
// part and the classifier: the outputs of other rows are not needed.
class TaggingModel {
 public:
  // The encoder and "classifier"; no pooler. `table` must outlive the model and must not move.
  TaggingModel(const BertConfig& config, const TaggerHead& head, ParameterTable& table);

  const BertConfig& config() const { return bert_.config(); }
  int64_t outputs() const { return head_.outputs; }

  // As in PreTrainingModel.
  MemoryPlan plan(Context& context, const BatchLimits& limits, const MemoryOptions& memory,
                  bool training);

  struct Result {
    double loss_sum = 0;
    int64_t words = 0, correct = 0;  // words: rows whose label is not -1
  };
  // loss = weight * sum over labelled rows of the cross-entropy with their labels; the table's
  // gradients as in training_pass.h.
  Result forward_backward(Context& context, const DeviceBatch& batch, double weight,
                          const TrainingPass& pass);
  Result evaluate(Context& context, const DeviceBatch& batch);
  // Returns the logits of labelled rows, f32 [labelled, outputs] on the CPU; labels are not read.
  Tensor predict(Context& context, const DeviceBatch& batch);

 private:
  Result run(Context& context, const DeviceBatch& batch, double weight, const TrainingPass* pass);

  Bert bert_;
  Range head_range_;
  TaggerHead head_;
  SequenceClassifier classifier_;
  ClassifierDropout dropout_;
  LabelCounter counter_;
};

}  // namespace onebit::model
