// One vector per text: the encoder and a pooling of its last hidden states, without a pooler
// (Reimers and Gurevych, arXiv 1908.10084).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "onebit/math/device/buffer.h"
#include "onebit/math/model/bert.h"

namespace onebit::embed {

enum class Pooling {
  kMean,   // the mean over all tokens of the text, special ones included
  kFirst,  // the first token, [CLS]
};

// The vectors are not normalized.
class EmbeddingModel {
 public:
  // The encoder only. `table` must outlive the model and must not move.
  EmbeddingModel(const model::EncoderConfig& config, Pooling pooling, ParameterTable& table);

  const model::EncoderConfig& config() const { return bert_.config(); }
  Pooling pooling() const { return pooling_; }
  int64_t hidden() const { return config().hidden_size; }

  // As in PreTrainingModel.
  model::MemoryPlan plan(Context& context, const model::BatchLimits& limits,
                         const model::MemoryOptions& memory, bool training);

  // Computes a loss of the vectors of a batch, f32 [sequences, hidden] on the CPU, and overwrites
  // `gradients`, of the same shape, with pass.loss_scale times its gradient. The caller supplies
  // it, since it may need the vectors of other ranks.
  using Loss = std::function<void(ConstView vectors, View gradients)>;
  // Adds to the table's gradients.
  void forward_backward(Context& context, const model::DeviceBatch& batch, const Loss& loss,
                        const model::TrainingPass& pass);
  // Returns the vectors of a batch, f32 [sequences, hidden] on the CPU.
  Tensor encode(Context& context, const model::DeviceBatch& batch);

 private:
  // Starts of the rows that the encoder returns: one row per sequence if only the first is needed.
  SequenceStarts pooled_starts(const model::DeviceBatch& batch) const;
  View pool(Context& context, const model::DeviceBatch& batch, ConstView hidden) const;

  model::Bert bert_;
  Pooling pooling_;
  Tensor vectors_, grad_vectors_;  // f32 [sequences, hidden]
  Tensor single_rows_;             // i32 [sequences + 1]: 0, 1, 2 ...
  std::vector<int32_t> host_single_rows_;
  Staging host_vectors_, host_gradients_;
};

}  // namespace onebit::embed
