// Element-wise activations. x and y share one type (f32, bf16, f16). Arithmetic is f32.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

enum class ActivationKind : uint8_t {
  kGeluErf,   // x/2 (1 + erf(x / sqrt 2))
  kGeluTanh,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kRelu,
  kSwish,  // x sigmoid(x)
  kTanh,
};

struct Activation {
  ActivationKind kind;
  ConstView x;  // [rows, columns]
  View y;       // [rows, columns]  overwritten, may be x if no backward pass reads x
};
void activation(Context&, const Activation&);

struct ActivationBackward {
  ActivationKind kind;
  ConstView grad_y;  // [rows, columns]
  ConstView saved;   // [rows, columns]  x, or the output y for kTanh
  View grad_x;       // [rows, columns]  overwritten, may be grad_y
  View grad_bias;    // f32 [columns]    column sums of grad_x, added to (empty: not computed)
};
void activation_backward(Context&, const ActivationBackward&);

// y = activation(a) * b (Shazeer, arXiv 2002.05202), where a row of x is a, then b.
struct GatedActivation {
  ActivationKind kind;
  ConstView x;  // [rows, 2 * columns]
  View y;       // [rows, columns]  overwritten
};
void gated_activation(Context&, const GatedActivation&);

struct GatedActivationBackward {
  ActivationKind kind;
  ConstView grad_y;  // [rows, columns]
  ConstView x;       // [rows, 2 * columns]
  View grad_x;       // [rows, 2 * columns]  overwritten, may be x
  View grad_bias;    // f32 [2 * columns]    column sums of grad_x, added to (empty: not computed)
};
void gated_activation_backward(Context&, const GatedActivationBackward&);

}  // namespace onebit::ops
