// One vector a text: the encoder and a pooling of its last hidden states, without a pooler (Reimers
// and Gurevych, arXiv 1908.10084).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "onebit/device/staging.h"
#include "onebit/model/bert.h"

namespace onebit::model {

enum class Pooling {
  kMean,   // the mean over all tokens of the text, special ones included
  kFirst,  // the first token, [CLS]
};

// Vectors are as pooled: their length is whatever it is.
class EmbeddingModel {
 public:
  // The encoder alone. `table` must outlive the model and stay where it is.
  EmbeddingModel(const BertConfig& config, Pooling pooling, params::Table& table);

  const BertConfig& config() const { return bert_.config(); }
  Pooling pooling() const { return pooling_; }
  int64_t hidden() const { return config().hidden_size; }

  // As in PreTrainingModel.
  MemoryPlan plan(Context& context, const BatchLimits& limits, const MemoryOptions& memory,
                  bool training);

  // Computes a loss of the vectors of a batch, f32 [sequences, hidden] on the CPU, and overwrites
  // `gradients`, of the same shape, with pass.loss_scale times its gradient. It is the caller's, as
  // it may need the vectors of other ranks.
  using Loss = std::function<void(ConstView vectors, View gradients)>;
  // Gradients are added.
  void forward_backward(Context& context, const DeviceBatch& batch, const Loss& loss,
                        const TrainingPass& pass);
  // The vectors of a batch, f32 [sequences, hidden] on the CPU.
  Tensor encode(Context& context, const DeviceBatch& batch);

 private:
  // Of the rows that the encoder gives: sequences of one row each where only the first is wanted.
  SequenceStarts pooled_starts(const DeviceBatch& batch) const;
  View pool(Context& context, const DeviceBatch& batch, ConstView hidden) const;

  Bert bert_;
  Pooling pooling_;
  Tensor vectors_, grad_vectors_;  // f32 [sequences, hidden]
  Tensor single_rows_;             // i32 [sequences + 1]: 0, 1, 2 ...
  std::vector<int32_t> host_single_rows_;
  Staging host_vectors_, host_gradients_;
};

}  // namespace onebit::model
