// LAMB's step from the momentum of 1-bit Adam (onebit_adam_update.h), which is already divided by
// the root of the variance. A received momentum consists of signs, whose norm is not the
// momentum's. The exact momentum is only known to the ranks that own it. So each rank sums the
// squares of the elements it owns, the sums of all ranks give the trust ratios, and then every rank
// makes the same step.
//
// The exact momentum comes from the workers' signs. A worker has sent all its gradients except its
// residual r_t, so that momentum is longer or shorter than the gradients' by (1 - beta1) times the
// mean over workers of d_t = r_t - q_(t-1), where q_t = beta1 q_(t-1) + (1 - beta1) r_t. A rank
// knows only the d of its own gradients, and computes it for the elements that it owns. Workers are
// alike and their residuals are independent, so the square of u without signs is in expectation
// |u|^2 + 2 <u, c d> + |c d|^2 / sources, with c = (1 - beta1) momentum_factor.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/blocks.h"
#include "onebit/math/tensor/view.h"

namespace onebit::updates {

using kernels::LambTensor;

// Elements [begin, end) of the flat buffer, at most kBlockElements, of one tensor, whose momentum
// starts at element `owned` of the rank's owned elements, and whose residual starts at element
// `in_share` of the rank's share (compress/owned_pieces.h).
struct LambPart {
  int64_t tensor = 0;
  int64_t begin = 0, end = 0;
  int64_t owned = 0, in_share = 0;
};

// Sums over the parts of each tensor, in f64, in an order that depends only on the parts.
constexpr int64_t kLambSums = 3;
struct OnebitLambSquares {
  ConstView value;     // f32 [elements]
  ConstView momentum;  // f32 [owned elements]
  ConstView residual;  // f32 [elements of the share]  r (empty: nothing is coded)
  View mean_residual;  // f32 [owned elements]  q, updated (empty like `residual`)
  // f64 [tensors, kLambSums]  overwritten: the squares of values, the squares of
  // u = momentum_factor momentum + weight_decay value, and what turns these into squares without
  // signs. 0 for a tensor without parts.
  View sums;
  std::span<const LambTensor> tensors;  // consecutive from 0 to elements, none empty
  std::span<const LambPart> parts;      // in the order of `begin`, none empty
  // u8: a copy of the parts in the memory of a CUDA device, made once. Empty: every call makes one,
  // for which the host waits.
  ConstView parts_on_device;
  double momentum_factor = 1, beta1 = 0;
  int sources = 1;
};
void onebit_lamb_squares(Context&, const OnebitLambSquares&);

// value -= learning_rate ratio (momentum_factor momentum + weight_decay value). Still entries keep
// their value, even with decay.
struct OnebitLambStep {
  View value;                           // f32 [elements]  updated
  View compute_value;                   // bf16 or f16 [elements]  overwritten (empty: none)
  ConstView momentum;                   // f32 [elements]
  ConstView still;                      // u8 [ceil(elements / 8)], bits as in onebit_adam_update.h
  ConstView ratio;                      // f32 [tensors]
  std::span<const LambTensor> tensors;  // as in OnebitLambSquares
  double learning_rate = 0, momentum_factor = 1;
};
void onebit_lamb_step(Context&, const OnebitLambStep&);

}  // namespace onebit::updates
