// Predicts where an answer begins and ends: Hugging Face's BertForQuestionAnswering and
// its relatives.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/math/device/buffer.h"
#include "onebit/math/model/bert.h"
#include "onebit/math/model/pooler.h"

namespace onebit::squad {

class QuestionAnsweringModel {
 public:
  // The encoder, "qa_outputs" and, if any, the layer before it. `dropout` acts on what "qa_outputs"
  // reads. `table` must stay where it is.
  QuestionAnsweringModel(const model::EncoderConfig& config, ParameterTable& table,
                         double dropout = 0);

  const model::EncoderConfig& config() const { return bert_.config(); }

  // As in PreTrainingModel.
  model::MemoryPlan plan(Context& context, const model::BatchLimits& limits,
                         const model::MemoryOptions& memory, bool training);

  struct Result {
    double loss_sum = 0;    // over sequences: (start loss + end loss) / 2
    int64_t sequences = 0;  // sequences with a start or an end
  };
  // loss = weight * sum over sequences. The table's gradients as in training_pass.h. The labels of
  // the sequences are [2, sequences]: first and last token of the answer, counted from the
  // sequence's first row, -1 where it is outside.
  Result forward_backward(Context& context, const model::DeviceBatch& batch, double weight,
                          const model::TrainingPass& pass);
  Result evaluate(Context& context, const model::DeviceBatch& batch);
  // Returns f32 [rows, 2] on the CPU: the scores of each token as the first and as the last of the
  // answer. Labels are not read.
  Tensor predict(Context& context, const model::DeviceBatch& batch);

 private:
  Result run(Context& context, const model::DeviceBatch& batch, double weight,
             const model::TrainingPass* pass);

  // Returns what the head's last layer reads, for the encoder's result.
  ConstView before_labels(Context& context, ConstView hidden) const;
  kernels::Dropout dropout_of(const model::DeviceBatch& batch,
                              const model::TrainingPass* pass) const;
  View logits(Context& context, ConstView before_labels) const;
  // Returns the logits, or their gradient if it is written.
  View scores_and_loss(Context& context, const model::DeviceBatch& batch, ConstView before_labels,
                       double gradient_scale, bool write_gradient) const;
  void head_backward(Context& context, ConstView grad_scores, ConstView hidden,
                     ConstView before_labels, const kernels::Dropout& dropout) const;
  Result sums(int64_t sequences);

  model::Bert bert_;
  Range head_range_;
  std::optional<model::Pooler> dense_;
  model::LinearParameters outputs_;
  double dropout_;
  Tensor grad_pooled_;  // [rows, hidden], with that layer
  Tensor dropped_;      // [rows, hidden], with dropout
  Tensor logits_;       // [rows, 2]
  Tensor losses_;       // f32 [2 * sequences]
  Staging host_losses_, host_spans_;
};

}  // namespace onebit::squad
