// The passes of 1-bit Adam (Tang et al., arXiv 2102.02888) around its compressed exchange, over
// flat buffers cut into blocks of 2048 elements. Names: x is what travels, either the momentum
// divided by d ("preconditioned") or the momentum; inverse = 1 / d, and exactly 0 for entries that
// stay still; a bitmap is u8 [ceil(elements / 8)], element i in bit i % 8 (least significant
// first) of byte i / 8.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/device/context.h"
#include "onebit/ops/adam_update.h"
#include "onebit/tensor/view.h"

namespace onebit::ops {

inline constexpr int64_t kUpdateBlockElements = 2048;

// The switch at the end of the warm-up, with d = sqrt(variance_factor variance) + epsilon.
// Entries whose variance is 0 become still: their momentum and inverse are 0.
struct OnebitFreeze {
  View momentum;  // f32 [elements]  in: momentum; out: x
  View variance;  // f32 [elements]  in: variance; out: inverse
  View still;     // bitmap  overwritten
  double epsilon = 1e-8, variance_factor = 1;
  bool preconditioned = true;
};
void onebit_freeze(Context&, const OnebitFreeze&);

// The mean of (g / d)^2 over the entries of each block whose variance is not 0, in the warm-up: d
// from the variance as it is. Covers the blocks of [begin, end): begin on a block, end on a block
// or the end of the buffer.
struct OnebitEnergy {
  ConstView gradient, variance;  // f32 [elements]
  View block_energy;             // f32 [blocks]  overwritten
  int64_t begin = 0, end = 0;
  double epsilon = 1e-8, variance_factor = 1;
};
void onebit_energy(Context&, const OnebitEnergy&);

// What is larger counts as infinite: its sum over ranks and with residuals must not overflow.
inline constexpr double kLargestFinite = 1e30;

enum BlockFlag : uint8_t {
  kBlockNotFinite = 1,   // some gradient or result was infinite or NaN
  kBlockStillMoved = 2,  // a still entry has a gradient
};

// Before the exchange, for the blocks of [begin, end) as above, with
// g = gradient_scale * gradient (+ weight_decay * value, only if `ranges` are given):
//   x = beta1 x + (1 - beta1) g / d     preconditioned; else beta1 x + (1 - beta1) g
// and x = 0 for still entries. With `block_ratio` d goes on first, with this rank's gradient:
//   d^2 = beta2 d^2 + (1 - beta2) g^2 / ratio,  d at least epsilon
// where the ratio of a block says how much larger the gradients of one rank are, squared, than
// those that d is made of. In a block with a result that is not finite the gradient is taken as
// zero and d stays as it was.
struct OnebitMomentum {
  View momentum;                        // f32 [elements]  updated
  View inverse;                         // f32 [elements]  updated with block_ratio
  ConstView block_ratio;                // f32 [blocks]; empty: d is held
  ConstView gradient;                   // f32 [elements]
  ConstView value;                      // f32 [elements], read only with ranges
  std::span<const UpdateRange> ranges;  // from 0 to elements, or empty: no decay in the gradient
  View block_energy;  // f32 [blocks]  overwritten: mean of (g / d)^2, not still; empty: not wanted
  View block_square;  // f64 [blocks]  overwritten: sum of g^2
  View block_flags;   // u8 [blocks]  overwritten
  int64_t begin = 0, end = 0;
  double gradient_scale = 1, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool preconditioned = true;
};
void onebit_momentum(Context&, const OnebitMomentum&);

// After the exchange:
//   value -= learning_rate (block_factor x [/ d] + weight_decay value)
// where x is divided by d unless preconditioned. Still entries keep their value, decay or not.
struct OnebitStep {
  View value;                           // f32 [elements]  updated
  View compute_value;                   // bf16 or f16 [elements]  overwritten; empty: none
  ConstView momentum;                   // f32 [elements]
  ConstView inverse;                    // f32 [elements]; empty when preconditioned
  ConstView still;                      // bitmap
  ConstView block_factor;               // f32 [blocks]
  std::span<const UpdateRange> ranges;  // consecutive from 0 to elements
  double learning_rate = 0;
};
void onebit_step(Context&, const OnebitStep&);

}  // namespace onebit::ops
