// One matrix product through cuBLASLt: its descriptors, and the choice of an algorithm.
#pragma once

#include "onebit/device/cuda_stream.h"
#include "onebit/ops/matmul_cuda.h"

namespace onebit::ops::cuda {

// Whether cuBLASLt takes this product: rows and pointers are multiples of 16 bytes.
bool suits_cublas(const Matmul& call);

// `bias` is of the result's type, or null.
void cublas_product(CudaStream& door, const Matmul& call, const void* bias);

}  // namespace onebit::ops::cuda
