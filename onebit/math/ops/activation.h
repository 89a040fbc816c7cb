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
  View y;       // [rows, columns]  overwritten, may be x if the backward pass reads y (kTanh)
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

}  // namespace onebit::ops
