// Which of cuBLASLt's algorithms makes a matrix product: the fastest one, measured when a product
// of its kind is first met, among those that give the same bits.
//
// Algorithms differ in tiles and in the order in which they add; the order decides the last bits.
// Two runs must agree bit for bit, and a measurement never repeats. So a measurement may only
// choose among algorithms that add in the order of the first one that cuBLASLt's heuristic names,
// which follows from the shape, the library and the device. The sample shows it: its sums are
// exactly zero, so that all there is in the result is the rounding errors of the order
// (product_sample_cuda.h). Where tokens are added over, it is asked for numbers of tokens with
// every remainder by the tiles that there are.
//
// Algorithms that cut k into parts may cut it differently for another k: they are used if the
// heuristic names them first, and never chosen by measurement. A measured algorithm must also
// accept every number of tokens it is chosen for, as must the first: a replacement would add in
// another order.
//
// The heuristic's first algorithm computes products too small to be worth a measurement, and those
// for which there is no memory. That changes their speed, never their bits.
#pragma once

#include <optional>

#include "onebit/device/cuda_stream.h"
#include "onebit/kernels/matrix_product.h"

namespace onebit::kernels::cuda {

// Numbers of tokens that share an algorithm: the heuristic is asked for the last.
struct TokenRange {
  int64_t first, last;
};
// The one around `tokens`: eight to an octave.
TokenRange tokens_around(int64_t tokens);

// Chooses for products of these numbers of tokens that are otherwise like this one; none if
// cuBLASLt cannot compute them. Measures, and so waits for the device. `vector` as in
// cublas_product.h.
std::optional<cublasLtMatmulAlgo_t> choose_algorithm(CudaStream& cuda, const MatrixProduct& product,
                                                     void* vector, TokenRange tokens);

// The power of two that divides the address, at most 256; 0 for none.
uint32_t alignment_bytes(const void* data);

}  // namespace onebit::kernels::cuda
