// The masked-word head: transform and norm if any, then the word embeddings or another decoder.
// Logits exist for a chunk of rows at a time. Each chunk runs forward and backward at once.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/memory_plan.h"

namespace onebit::model {

class MaskedLmHead {
 public:
  // The most rows of a chunk: as many as make 256 MiB of logits, since every chunk reads and writes
  // the gradient of all word embeddings, and few rows leave a GPU's multiprocessors idle. On a CPU
  // not more than its caches like.
  static int64_t most_chunk_rows(DeviceType device, DType compute, int64_t stored_vocab_size);

  // Declares "cls.predictions". `word_embeddings` is the matrix that a tied decoder shares.
  MaskedLmHead(const EncoderConfig& config, ParameterTable& table, int word_embeddings);

  void reserve(MemoryPlan& memory, int64_t masked, bool training, DType compute);

  struct Loss {
    ConstView hidden;      // [masked, hidden]
    ConstView targets;     // i32 [masked]
    float gradient_scale;  // for every masked token's loss
    View grad_hidden;      // [masked, hidden]  overwritten, empty in evaluation
  };
  // Computes losses() and correct(), and unless in evaluation the table's gradients
  // (training_pass.h).
  void loss(Context& context, const Loss& call) const;
  // f32 [masked] and u8 [masked] of the last call of loss().
  View losses(int64_t masked) const { return losses_.first_rows(masked); }
  View correct(int64_t masked) const { return correct_.first_rows(masked); }

  // hidden [masked, hidden], logits f32 [masked, vocab_size] on the CPU, overwritten.
  void predict(Context& context, ConstView hidden, View logits) const;

 private:
  // Returns what the decoder reads: [masked, width].
  ConstView transform(Context& context, ConstView hidden) const;
  void transform_backward(Context& context, ConstView hidden, View grad_hidden) const;
  // The logits of some rows of the decoder's input.
  View decode(Context& context, ConstView input) const;

  EncoderConfig config_;
  int64_t chunk_rows_ = 0;
  ParameterTable* table_;
  LinearParameters decoder_;
  LinearParameters dense_;
  NormParameters norm_;
  Tensor pre_activation_, activated_, normed_, mean_, inverse_stddev_;  // [masked, ...]
  Tensor grad_normed_;                                                  // [masked, width]
  Tensor logits_;                                                       // [chunk, stored vocab]
  Tensor losses_, correct_;
};

}  // namespace onebit::model
