// Attention without tensor cores: for f32, and for head sizes that the tiled kernels do not
// support.
#pragma once

#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/ops/attention.h"

namespace onebit::ops::cuda {

void plain_attention(CudaStream& cuda, const Attention& a);
// Does not read or write the bits of dropout and the bias's gradient.
void plain_attention_backward(CudaStream& cuda, const AttentionBackward& a);

}  // namespace onebit::ops::cuda
