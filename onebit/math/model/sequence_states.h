// What a sequence classifier reads of the last hidden states: of each sequence the first token's,
// or the mean of all.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/model/batch.h"
#include "onebit/math/model/bert.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/memory_plan.h"

namespace onebit::model {

class SequenceStates {
 public:
  explicit SequenceStates(const EncoderConfig& config)
      : hidden_(config.hidden_size),
        has_mean_(config.choices.sequence_pooling == SequencePooling::kMean) {}

  // EncoderPlan::output_rows for a head that reads these states.
  int64_t planned_rows(const BatchLimits& limits) const { return has_mean_ ? 0 : limits.sequences; }
  // The rows that the encoder computes: none listed for the mean, which needs every row. `first` is
  // batch.first_rows().
  OutputRows output_rows(const ConstView& first) const {
    return has_mean_ ? OutputRows() : OutputRows(&first, 1);
  }

  void reserve(MemoryPlan& memory, int64_t sequences, bool training, DType compute);
  // Returns [sequences, hidden], valid until the next call. `hidden` is what the encoder returned.
  ConstView read(Context& context, const DeviceBatch& batch, ConstView hidden) const;
  // The memory to which the head writes the gradient of what read() returned.
  View gradient(const DeviceBatch& batch, View output_gradient) const;
  // Overwrites output_gradient, after the head has written gradient().
  void backward(Context& context, const DeviceBatch& batch, View output_gradient) const;

 private:
  int64_t hidden_;
  bool has_mean_;
  Tensor mean_, grad_mean_;        // f32 [sequences, hidden]
  Tensor rounded_, grad_rounded_;  // [sequences, hidden], if the compute type is not f32
};

}  // namespace onebit::model
