// Dense layers whose operands are rounded to 8 bits, for predictions. Weights are rounded once,
// each row [in] on its own, which is a column of the product: w = scale * s8. Inputs are rounded in
// each product, each row on its own, so that a row's result does not depend on the others:
// x = scale * (u8 - zero). The range of a row reaches from its smallest to its largest number,
// since an activation such as GELU yields hardly any negative ones. Sums are exact 32-bit integers.
// Everything else is f32.
#pragma once

#include <optional>
#include <string>

#include "onebit/math/device/context.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// Why the device has no such products ("CUDA devices ..."). Empty if it has them.
std::string why_no_int8(Context&);

// Rounds the values of an f32 weight. True: linear() and linear_activation() multiply it with
// int8_linear() from now on, and nothing else may read the weight or write it. False: it has so few
// outputs that f32 costs nothing, and nothing has changed. The device must have such products.
bool quantise_constant_weight(Context&, const PackConstantWeight&);

// y = activation(x . weight^T + bias)
struct Int8Linear {
  ConstView x;                               // [rows, in]
  ConstView weight;                          // [out, in]  after quantise_constant_weight()
  ConstView bias;                            // [out], or empty
  std::optional<ActivationKind> activation;  // absent: none
  View y;                                    // [rows, out]  overwritten
};
void int8_linear(Context&, const Int8Linear&);

}  // namespace onebit::ops
