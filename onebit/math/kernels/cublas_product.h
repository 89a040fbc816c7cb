// One matrix product by cuBLASLt, with its epilogue. The algorithm is chosen once per kind of
// product (cublas_choice.h) and kept by the stream.
#pragma once

#include <cstdint>

#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/kernels/matrix_product.h"

namespace onebit::kernels::cuda {

// Whether cuBLASLt accepts this product: rows and pointers are multiples of 16 bytes.
bool suits_cublas(const MatrixProduct& product);

// `vector` is the bias in c's type, or for kRowSums f32 [m], overwritten, and otherwise null.
// Returns
// false, without any effect, if cuBLASLt has no algorithm for the product.
bool cublas_product(CudaStream& cuda, const MatrixProduct& product, void* vector);

}  // namespace onebit::kernels::cuda
