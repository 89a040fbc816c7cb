// A matrix product in cuBLASLt's terms: descriptors and their destruction.
#pragma once

#include "onebit/ground/base/error.h"
#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/kernels/matrix_product.h"

namespace onebit::kernels::cuda {

inline void check_cublas(cublasStatus_t status, const char* call) {
  require(status == CUBLAS_STATUS_SUCCESS, "{}: {}", call, cublasLtGetStatusString(status));
}

template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
class CublasHandle {
 public:
  CublasHandle() = default;
  ~CublasHandle() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  CublasHandle(const CublasHandle&) = delete;
  CublasHandle& operator=(const CublasHandle&) = delete;
  Handle* put() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

class CublasProblem {
 public:
  // `vector` as in cublas_product.h.
  CublasProblem(const MatrixProduct& product, void* vector);

  cublasStatus_t run(CudaStream& cuda, const cublasLtMatmulAlgo_t& algorithm) const;

  cublasLtMatmulDesc_t description() const { return description_.get(); }
  cublasLtMatrixLayout_t left() const { return left_.get(); }
  cublasLtMatrixLayout_t right() const { return right_.get(); }
  cublasLtMatrixLayout_t result() const { return result_.get(); }

 private:
  using Layout = CublasHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  void describe_epilogue(void* vector);
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_cublas(
        cublasLtMatmulDescSetAttribute(description_.get(), attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
  }

  MatrixProduct product_;
  Layout left_, right_, result_;
  CublasHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> description_;
};

}  // namespace onebit::kernels::cuda
