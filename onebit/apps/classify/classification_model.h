// Predicts labels or numbers of a sequence: Hugging Face's BertForSequenceClassification and
// its relatives.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "onebit/math/model/bert.h"
#include "onebit/math/model/label_counter.h"
#include "onebit/math/model/pooler.h"
#include "onebit/math/model/sequence_classifier.h"

namespace onebit::classify {

struct ClassifierHead {
  int64_t outputs = 2;
  model::LabelKind kind = model::LabelKind::kClass;
  std::optional<double> dropout = {};  // absent: the encoder's hidden dropout
  std::vector<float> weights = {};     // [outputs], see SequenceClassifier::Loss. Empty: 1
};

class ClassificationModel {
 public:
  // The encoder, the pooler and "classifier". `table` must outlive the model and must not move.
  ClassificationModel(const model::EncoderConfig& config, ClassifierHead head,
                      ParameterTable& table);

  const model::EncoderConfig& config() const { return bert_.config(); }
  const ClassifierHead& head() const { return head_; }

  // As in PreTrainingModel.
  model::MemoryPlan plan(Context& context, const model::BatchLimits& limits,
                         const model::MemoryOptions& memory, bool training);

  struct Result {
    double loss_sum = 0;
    int64_t sequences = 0, correct = 0;  // correct: only with kClass
  };
  // loss = weight * sum over sequences of the loss of batch.sequence_labels [sequences] (kClass) or
  // batch.sequence_values [sequences, outputs]. The table's gradients as in training_pass.h.
  Result forward_backward(Context& context, const model::DeviceBatch& batch, double weight,
                          const model::TrainingPass& pass);
  Result evaluate(Context& context, const model::DeviceBatch& batch);
  // Returns the logits, f32 [sequences, outputs] on the CPU. Labels are not read.
  Tensor predict(Context& context, const model::DeviceBatch& batch);

 private:
  ConstView states(Context& context, const model::DeviceBatch& batch,
                   const model::TrainingPass* pass);
  Result run(Context& context, const model::DeviceBatch& batch, double weight,
             const model::TrainingPass* pass);

  model::Bert bert_;
  Range head_range_;
  model::SequenceStates states_;
  model::Pooler pooler_;
  ClassifierHead head_;
  model::SequenceClassifier classifier_;
  model::ClassifierDropout dropout_;
  Tensor weights_;      // f32 [outputs]
  Tensor grad_pooled_;  // [sequences, hidden]
  model::LabelCounter counter_;
};

}  // namespace onebit::classify
