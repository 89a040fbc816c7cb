// One label a sequence: Hugging Face's BertForSequenceClassification.
#pragma once

#include <cstdint>

#include "onebit/model/bert.h"
#include "onebit/model/label_counter.h"
#include "onebit/model/pooler.h"
#include "onebit/model/sequence_classifier.h"

namespace onebit::model {

class ClassificationModel {
 public:
  // The encoder, the pooler and "classifier". `table` must outlive the model and stay where it is.
  ClassificationModel(const BertConfig& config, int64_t classes, params::Table& table);

  const BertConfig& config() const { return bert_.config(); }
  int64_t classes() const { return classes_; }

  // As in PreTrainingModel.
  MemoryPlan plan(Context& context, const BatchLimits& limits, const MemoryOptions& memory,
                  bool training);

  struct Result {
    double loss_sum = 0;
    int64_t sequences = 0, correct = 0;

    Result& operator+=(const Result& other);
  };
  // loss = weight * sum over sequences of the cross-entropy of batch.classes; gradients are added.
  Result forward_backward(Context& context, const DeviceBatch& batch, double weight,
                          const TrainingPass& pass);
  Result evaluate(Context& context, const DeviceBatch& batch);
  // f32 [sequences, classes] on the CPU; labels are not read.
  Tensor predict(Context& context, const DeviceBatch& batch);

 private:
  Result run(Context& context, const DeviceBatch& batch, double weight, const TrainingPass* pass);

  kernels::Dropout dropout(Context& context, const DeviceBatch& batch,
                           const TrainingPass* pass) const;

  Bert bert_;
  params::Range head_range_;
  Pooler pooler_;
  int64_t classes_;
  SequenceClassifier classifier_;
  Tensor first_row_keys_;  // u64 [sequences]
  Tensor grad_pooled_;     // [sequences, hidden]
  LabelCounter counter_;
};

}  // namespace onebit::model
