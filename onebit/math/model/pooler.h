// The layer between the encoder and its labels: norm(activation(W h + b)). In BERT it is the
// pooler, tanh(W h + b) of the first token of each sequence. Families differ in activation, norm
// and bias, and may drop out of h.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/memory_plan.h"

namespace onebit::model {

class Pooler {
 public:
  // Declares "bert.pooler.dense", and "bert.pooler.LayerNorm" if the family has that norm.
  Pooler(const EncoderConfig& config, ParameterTable& table);

  void reserve(MemoryPlan& memory, int64_t rows, bool training, DType compute);
  // hidden, result: [rows, hidden]. The result is valid until the next call. `dropout` acts on
  // hidden, if the family has dropout there.
  View forward(Context& context, ConstView hidden, const kernels::Dropout& dropout = {}) const;
  // Follows forward() with the same arguments. grad_pooled is overwritten with the gradient before
  // the activation. grad_hidden is overwritten.
  void backward(Context& context, ConstView hidden, View grad_pooled, View grad_hidden,
                const kernels::Dropout& dropout = {}) const;

 private:
  // The dropout of hidden, or none.
  kernels::Dropout first_dropout(kernels::Dropout dropout) const;

  EncoderConfig config_;
  ParameterTable* table_;
  ops::ActivationKind activation_;
  LinearParameters dense_;
  NormParameters norm_;
  // [rows, hidden]. tanh needs no input for its gradient.
  Tensor dropped_, pre_activation_, activated_, normed_;
  Tensor mean_, inverse_stddev_;  // f32 [rows]
};

}  // namespace onebit::model
