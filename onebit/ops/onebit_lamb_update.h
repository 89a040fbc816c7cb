// LAMB's step from the momentum of 1-bit Adam (onebit_adam_update.h), which is already divided by
// the root of the variance. A received momentum consists of signs, whose norm is not the
// momentum's; the exact momentum is only known to the ranks that own it. So each rank sums the
// squares of the elements it owns, the sums of all ranks give the trust ratios, and then every rank
// makes the same step.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/device/context.h"
#include "onebit/kernels/lamb_tensor.h"
#include "onebit/tensor/view.h"

namespace onebit::ops {

using kernels::LambTensor;

// Elements [begin, end) of the flat buffer, at most kBlockElements, of one tensor, whose momentum
// starts at element `owned` of the rank's owned elements.
struct LambPart {
  int64_t tensor = 0;
  int64_t begin = 0, end = 0;
  int64_t owned = 0;
};

// Sums the squares of values and of u = momentum_factor momentum + weight_decay value over the
// parts of each tensor, in f64, in an order that depends only on the parts.
struct OnebitLambSquares {
  ConstView value;     // f32 [elements]
  ConstView momentum;  // f32 [owned elements]
  View squares;        // f64 [tensors, 2]  overwritten: of values, of u; 0 without parts
  std::span<const LambTensor> tensors;  // consecutive from 0 to elements, none empty
  std::span<const LambPart> parts;      // in the order of `begin`, none empty
  double momentum_factor = 1;
};
void onebit_lamb_squares(Context&, const OnebitLambSquares&);

// Likewise sums the squares of the worker residual, which a rank has not sent yet
// (compress/compressed_all_reduce.h), over the parts of each tensor.
struct OnebitLambResidual {
  ConstView residual;  // f32 [elements of the rank's share], at LambPart::owned
  View squares;        // f64 [tensors]  overwritten
  std::span<const LambTensor> tensors;
  std::span<const LambPart> parts;
};
void onebit_lamb_residual(Context&, const OnebitLambResidual&);

// value -= learning_rate ratio (momentum_factor momentum + weight_decay value). Still entries keep
// their value, even with decay.
struct OnebitLambStep {
  View value;                           // f32 [elements]  updated
  View compute_value;                   // bf16 or f16 [elements]  overwritten; empty: none
  ConstView momentum;                   // f32 [elements]
  ConstView still;                      // u8 [ceil(elements / 8)], bits as in onebit_adam_update.h
  ConstView ratio;                      // f32 [tensors]
  std::span<const LambTensor> tensors;  // as in OnebitLambSquares
  double learning_rate = 0, momentum_factor = 1;
};
void onebit_lamb_step(Context&, const OnebitLambStep&);

}  // namespace onebit::ops
