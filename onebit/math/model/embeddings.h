// Word, position and segment embeddings with their layer norm and dropout.
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
  Embeddings(const BertConfig& config, ParameterTable& table);

  int word() const { return word_; }

  // Reserves the f32 [rows] statistics for the backward pass.
  void reserve(MemoryPlan& memory, const BatchLimits& limits, bool training);
  // y [rows, hidden] is overwritten. `pass` null: evaluation.
  void forward(Context& context, const DeviceBatch& batch, const TrainingPass* pass, View y) const;
  // Adds to the gradients of the embedding tables.
  void backward(Context& context, const DeviceBatch& batch, const TrainingPass& pass,
                ConstView grad_y) const;

 private:
  kernels::Dropout dropout(const DeviceBatch& batch, const TrainingPass* pass) const;

  BertConfig config_;
  ParameterTable* table_;
  int word_, position_, segment_;
  NormParameters norm_;
  Tensor mean_, inverse_stddev_;
};

}  // namespace onebit::model
