// BERT pre-training: predicts masked words, and optionally whether the second part follows the
// first.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/math/model/bert.h"
#include "onebit/math/model/label_counter.h"
#include "onebit/math/model/masked_lm_head.h"
#include "onebit/math/model/pooler.h"
#include "onebit/math/model/sequence_classifier.h"

namespace onebit::model {

// The labelled rows of a batch are the masked ones, and their labels the original tokens. The label
// of a sequence is 0 if its second part follows the first, and 1 if it is random.
enum class PreTrainingHeads {
  kBoth,         // masked words, pooler, next sentence: BertForPreTraining
  kMaskedWords,  // BertForMaskedLM, which has no pooler
};

class PreTrainingModel {
 public:
  // Declares the parameters of Hugging Face's class named at `heads`. The caller then allocates and
  // fills the table. `table` must outlive the model and must not move.
  PreTrainingModel(const EncoderConfig& config, ParameterTable& table, PreTrainingHeads heads);

  const EncoderConfig& config() const { return bert_.config(); }

  // Reserves everything for micro-batches up to `limits` on the table's device and in its compute
  // type: no later pass allocates. With `training` false only evaluation is possible. Returns what
  // was reserved.
  MemoryPlan plan(Context& context, const BatchLimits& limits, const MemoryOptions& memory,
                  bool training);
  // Makes the reservations of plan() in `memory`, for reports.
  void reserve(MemoryPlan& memory, const BatchLimits& limits, const MemoryOptions& options,
               bool training, DType compute);

  // Weights of the two sums in the loss:
  //   loss = masked_lm * (sum over masked tokens) + next_sentence * (sum over sequences).
  // 1 / (masked tokens) and 1 / (sequences) of the global batch yield means over it.
  struct LossWeights {
    double masked_lm = 0;
    double next_sentence = 0;
  };
  // Sums over one micro-batch, unweighted and unscaled. Sums of next-sentence prediction are 0
  // without its head.
  struct Result {
    double mlm_loss_sum = 0, nsp_loss_sum = 0;
    int64_t masked = 0, masked_correct = 0;
    int64_t sequences = 0, nsp_correct = 0;  // with a label

    Result& operator+=(const Result& other);
  };

  // Forward and backward: loss_scale * d loss / d parameter is added to the table's gradients, or
  // overwrites stale ones (training_pass.h).
  Result forward_backward(Context& context, const DeviceBatch& batch, const LossWeights& weights,
                          const TrainingPass& pass);
  // Computes the result without dropout and gradients.
  Result evaluate(Context& context, const DeviceBatch& batch);
  // Scores of every word at the batch's masked rows: f32 [masked, vocab_size] on the CPU. Targets
  // are not read.
  Tensor predict_masked(Context& context, const DeviceBatch& batch);

 private:
  Result run(Context& context, const DeviceBatch& batch, const LossWeights& weights,
             const TrainingPass* pass);
  void next_sentence_loss(Context& context, const DeviceBatch& batch, View first_hidden,
                          double weight, const TrainingPass* pass);
  void check(int64_t masked) const;

  BatchLimits limits_;
  Bert bert_;
  Range head_range_;
  std::optional<Pooler> pooler_;
  MaskedLmHead masked_lm_;
  std::optional<SequenceClassifier> next_sentence_;  // present together with the pooler
  Tensor grad_pooled_;                               // [sequences, hidden]
  LabelCounter masked_counter_, sequence_counter_;
};

}  // namespace onebit::model
