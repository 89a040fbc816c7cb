// Dense layers. Activations and weights share one type (f32, bf16, f16). Sums are f32. A bias is
// f32 or, on a CUDA device, of that type, to which cuBLASLt rounds it before it is added.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// y = x . weight^T + bias
struct Linear {
  ConstView x;       // [rows, in]
  ConstView weight;  // [out, in]
  ConstView bias;    // [out], or empty
  View y;            // [rows, out]  overwritten
};
void linear(Context&, const Linear&);

// pre_activation = x . weight^T + bias,  y = activation(pre_activation)
//
// On CUDA devices tanh-GELU in 16-bit types is fused into the product and reads the sum before it
// is rounded to pre_activation. Its tanh is exact to 2^-11.
struct LinearActivation {
  ActivationKind kind;
  ConstView x;          // [rows, in]
  ConstView weight;     // [out, in]
  ConstView bias;       // [out], or empty
  View pre_activation;  // [rows, out]  overwritten. Of a rounded weight (int8_linear.h) not
                        // written: only predictions have one, and they do not read it
  View y;               // [rows, out]  overwritten, other memory than pre_activation
};
void linear_activation(Context&, const LinearActivation&);

// grad_x = grad_y . weight
struct LinearBackwardInput {
  ConstView grad_y;  // [rows, out]
  ConstView weight;  // [out, in]
  View grad_x;       // [rows, in]  overwritten, or added to if `add`
  bool add = false;
};
void linear_backward_input(Context&, const LinearBackwardInput&);

// Backward through the layer and the activation before it: grad_x = (grad_y . weight)
// activation'(saved),  grad_bias += column sums of grad_x
struct LinearBackwardActivation {
  ActivationKind kind;
  ConstView grad_y;  // [rows, out]
  ConstView weight;  // [out, in]
  ConstView saved;   // [rows, in]  what activation_backward reads
  View grad_x;       // [rows, in]  overwritten
  View grad_bias;    // f32 [in]    added to (empty: not computed)
};
void linear_backward_activation(Context&, const LinearBackwardActivation&);

// grad_weight += grad_y^T . x,  grad_bias += column sums of grad_y
struct LinearBackwardWeight {
  ConstView grad_y;  // [rows, out]
  ConstView x;       // [rows, in]
  View grad_weight;  // f32 [out, in]  added to, or overwritten
  bool overwrite_weight = false;
  View grad_bias;  // f32 [out]      added to (empty: not computed, or summed elsewhere)
};
void linear_backward_weight(Context&, const LinearBackwardWeight&);

// Packs a weight [out, in] that ConstantWeights covers (device/constant_weights.h) for linear() and
// linear_activation(), now instead of in the first product.
struct PackConstantWeight {
  ConstView weight;  // [out, in]  its memory need not be written
  ConstView values;  // [out, in]  what it is to contain, in its type, or the weight itself
};
// True: they read only the packed copy from now on, and nothing else may read the weight or write
// it. False: products read the weight itself, which must be written before.
bool pack_constant_weight(Context&, const PackConstantWeight&);

// Whether the device multiplies bf16 natively. If it does not (a CPU without AVX-512 BF16 or AMX),
// linear widens bf16 operands into f32 scratch, multiplies in f32 and rounds the output: correct,
// but no faster than f32. f16 is always widened on a CPU.
bool bf16_is_native(Context&);
// Whether products of bf16 are faster with copies of weights that stay the same (ConstantWeights).
// On CPUs with AMX they are not: products of many rows pack their operands themselves.
bool bf16_gains_from_copies(Context&);

}  // namespace onebit::ops
