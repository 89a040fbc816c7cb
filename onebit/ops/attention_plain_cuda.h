// Attention without tensor cores: for f32, and for head sizes that the tiled kernels do not
// support.
#pragma once

#include "onebit/device/cuda_stream.h"
#include "onebit/ops/attention.h"

namespace onebit::ops::cuda {

void plain_attention(CudaStream& cuda, const Attention& a);
// `delta` f32 [heads, rows]: the products grad_context . context of every token and head.
void plain_attention_backward(CudaStream& cuda, const AttentionBackward& a, const float* delta);

}  // namespace onebit::ops::cuda
