// The functions of cuBLASLt, which is loaded when the first of them is called. Where it is missing,
// they report CUBLAS_STATUS_NOT_INITIALIZED, and its text is what to do.
#include <cublasLt.h>

#include "onebit/ground/base/shared_library.h"

namespace {

onebit::SharedLibrary& cublas() {
  static auto& library = *new onebit::SharedLibrary(
      ONEBIT_CUBLAS_PATH,
      "install the CUDA toolkit's libraries, name the folder that has it in LD_LIBRARY_PATH "
      "(PyTorch's is site-packages/nvidia/cublas/lib or nvidia/cu13/lib), or use --device cpu");
  return library;
}

template <auto declared, class... Arguments>
cublasStatus_t call(const char* name, Arguments... arguments) {
  return onebit::call_of<declared>(cublas(), name, CUBLAS_STATUS_NOT_INITIALIZED, arguments...);
}

}  // namespace

const char* cublasLtGetStatusString(cublasStatus_t status) {
  const char* const problem = cublas().problem();
  if (*problem != '\0') return problem;
  return onebit::call_of<cublasLtGetStatusString>(cublas(), __func__, "", status);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return call<cublasLtCreate>(__func__, handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return call<cublasLtDestroy>(__func__, handle);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  return call<cublasLtMatmul>(__func__, handle, product, alpha, a, a_layout, b, b_layout, beta, c,
                              c_layout, d, d_layout, algorithm, workspace, workspace_bytes, stream);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  return call<cublasLtMatmulAlgoCheck>(__func__, handle, product, a, b, c, d, algorithm, result);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* to, size_t size_bytes,
                                                    size_t* written_bytes) {
  return call<cublasLtMatmulAlgoConfigGetAttribute>(__func__, algorithm, attribute, to, size_bytes,
                                                    written_bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  return call<cublasLtMatmulAlgoGetHeuristic>(__func__, handle, product, a, b, c, d, preference,
                                              wanted, results, count);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return call<cublasLtMatmulDescCreate>(__func__, product, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  return call<cublasLtMatmulDescDestroy>(__func__, product);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* from, size_t size_bytes) {
  return call<cublasLtMatmulDescSetAttribute>(__func__, product, attribute, from, size_bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return call<cublasLtMatmulPreferenceCreate>(__func__, preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return call<cublasLtMatmulPreferenceDestroy>(__func__, preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* from, size_t size_bytes) {
  return call<cublasLtMatmulPreferenceSetAttribute>(__func__, preference, attribute, from,
                                                    size_bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  return call<cublasLtMatrixLayoutCreate>(__func__, layout, type, rows, columns, stride);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return call<cublasLtMatrixLayoutDestroy>(__func__, layout);
}
