#include "onebit/math/kernels/cublas_problem.h"

namespace onebit::kernels::cuda {
namespace {

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::kF32 ? CUDA_R_32F : dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_16F;
}

}  // namespace

// cuBLASLt expects column-major matrices, in which a row-major [rows, columns] is [columns, rows].
// So c^T = b^T . a^T, with our b as its left operand (its A) and our a as its right one (its B).
CublasProblem::CublasProblem(const MatrixProduct& product, void* vector) : product_(product) {
  const auto make = [](Layout& layout, const ConstView& matrix) {
    check_cublas(cublasLtMatrixLayoutCreate(
                     layout.put(), type_of(matrix.dtype()), static_cast<uint64_t>(matrix.extent(1)),
                     static_cast<uint64_t>(matrix.extent(0)), matrix.extent(1)),
                 "cublasLtMatrixLayoutCreate");
  };
  make(left_, product.b);
  make(right_, product.a);
  make(result_, product.c);
  const auto compute = product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check_cublas(cublasLtMatmulDescCreate(description_.put(), compute, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  set(CUBLASLT_MATMUL_DESC_TRANSA, product.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, product.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  describe_epilogue(vector);
}

void CublasProblem::describe_epilogue(void* vector) {
  const auto give_vector = [&](cublasLtEpilogue_t epilogue) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(product_.c.dtype()));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  };
  const auto give_matrix = [&](const void* matrix) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, matrix);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product_.n());
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type_of(product_.c.dtype()));
  };
  switch (product_.epilogue) {
    case Epilogue::kNone:
      return;
    case Epilogue::kBias:
      return give_vector(CUBLASLT_EPILOGUE_BIAS);
    case Epilogue::kBiasGeluTanh:
      give_vector(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
      return give_matrix(product_.pre_activation.raw());
    case Epilogue::kGeluTanhGradient:
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
      return give_matrix(product_.saved.raw());
    case Epilogue::kRowSums:  // c, and so the sums, are f32
      return give_vector(CUBLASLT_EPILOGUE_BGRADB);
  }
}

cublasStatus_t CublasProblem::run(CudaStream& cuda, const cublasLtMatmulAlgo_t& algorithm) const {
  const float alpha = 1, beta = product_.accumulate ? 1.0f : 0.0f;
  return cublasLtMatmul(cuda.cublas(), description(), &alpha, product_.b.raw(), left(),
                        product_.a.raw(), right(), &beta, product_.c.raw(), result(),
                        product_.c.raw(), result(), &algorithm, cuda.workspace(),
                        CudaStream::kWorkspaceBytes, cuda.stream());
}

}  // namespace onebit::kernels::cuda
