// Embeddings of words, and where a family has them of positions and segments, with their norm,
// dropout and a projection to the hidden size.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/model/batch.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/training_pass.h"

namespace onebit::model {

class Embeddings {
 public:
  // Declares "bert.embeddings", and "bert.embeddings_project" for embeddings of another size.
  Embeddings(const EncoderConfig& config, ParameterTable& table);

  int word() const { return word_; }

  // Reserves what the backward pass reads: f32 [rows] statistics, and the projection's input.
  void reserve(MemoryPlan& memory, const BatchLimits& limits, bool training, DType compute);
  // y [rows, hidden] is overwritten. `pass` null: evaluation.
  void forward(Context& context, const DeviceBatch& batch, const TrainingPass* pass, View y) const;
  // Adds to the gradients of the embedding tables.
  void backward(Context& context, const DeviceBatch& batch, const TrainingPass& pass,
                ConstView grad_y) const;

 private:
  kernels::Dropout dropout(const DeviceBatch& batch, const TrainingPass* pass) const;
  // The rows of the table of positions that belong to tokens of the batch.
  template <typename AnyView>
  AnyView token_positions(const DeviceBatch& batch, AnyView table) const;
  ConstView segments(const DeviceBatch& batch) const;

  EncoderConfig config_;
  ParameterTable* table_;
  int word_, position_, segment_;  // -1: no table
  NormParameters norm_;
  LinearParameters projection_;
  Tensor mean_, inverse_stddev_;
  Tensor embedded_, grad_embedded_;  // [rows, embedding_size], if they are projected
  Tensor one_segment_;               // i32 [rows], zeros, for a table of one row
};

}  // namespace onebit::model
