// The pooler: tanh(W h + b) for the first token of each sequence.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/memory_plan.h"

namespace onebit::model {

class Pooler {
 public:
  // Declares "bert.pooler.dense".
  Pooler(const EncoderConfig& config, ParameterTable& table);

  void reserve(MemoryPlan& memory, int64_t sequences, DType compute);
  // hidden, result: [sequences, hidden]; the result is valid until the next call.
  View forward(Context& context, ConstView hidden) const;
  // grad_pooled is overwritten with the gradient before tanh; grad_hidden is overwritten.
  void backward(Context& context, ConstView hidden, View grad_pooled, View grad_hidden) const;

 private:
  EncoderConfig config_;
  ParameterTable* table_;
  LinearParameters dense_;
  Tensor pooled_;
};

}  // namespace onebit::model
