// The arithmetic of the emulated cuBLASLt: D = epilogue(op(A) . op(B) + beta C), column-major.
#pragma once

#include <cublasLt.h>

#include <cstdint>

struct EmulatedProduct {
  cublasOperation_t a_operation = CUBLAS_OP_N, b_operation = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  cudaDataType_t bias_type = CUDA_R_32F;
  void* aux = nullptr;
  int64_t aux_leading = 0;
  cudaDataType_t aux_type = CUDA_R_32F;
  bool tf32 = false;  // operands are rounded to tf32
};
struct EmulatedLayout {
  cudaDataType_t type;
  int64_t rows, columns, leading;
};

namespace emulated_cuda {

// The order in which the products of an element are added. Tensor cores add kStep of them at once.
// If k is no multiple of the tile, the partial tile comes first: then other tile sizes group the
// products differently, while they group them equally if k is a multiple of both sizes.
struct AddingOrder {
  int64_t tile;    // along k
  bool backwards;  // the last tile first
  int32_t parts;   // k is split into so many, whose sums are added at the end
  bool even_only;  // refuses matrices B with an odd number of rows or columns
};
inline constexpr int kOrders = 6;
inline constexpr AddingOrder kAddingOrders[kOrders] = {
    {32, false, 1, false}, {64, false, 1, false}, {32, true, 1, false},
    {32, false, 1, true},  {32, false, 2, false}, {32, false, 1, false}};

struct Factors {
  const void *a, *b;
  void* c;
  EmulatedLayout a_layout, b_layout, c_layout;
  float alpha, beta;
};
void multiply(const EmulatedProduct& product, const Factors& factors, const AddingOrder& order);

}  // namespace emulated_cuda
