// The functions of cuBLASLt: descriptors, the heuristic, and the checks of supported products.
#include <cublasLt.h>

#include <cstring>
#include <initializer_list>

#include "tests/emulated_cuda/device_language.h"
#include "tests/emulated_cuda/matrix_multiply.h"
#include "tests/emulated_cuda/requested_failure.h"
#include "tests/emulated_cuda/work.h"

struct EmulatedBlas {
  int device;
};
struct EmulatedPreference {
  uint64_t workspace_bytes = 0;
  uint32_t schemes = ~0u;
  uint32_t alignment_bytes[4] = {256, 256, 256, 256};
};

namespace emulated_cuda {
namespace {

constexpr uint32_t kAlignmentBytes = 16;
constexpr size_t kWorkspaceBytes = size_t{1} << 20;  // of the algorithm that splits k

int64_t size_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? 4 : 2;
}

bool has_bias(const EmulatedProduct& p) {
  return p.epilogue == CUBLASLT_EPILOGUE_BIAS || p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
         p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
}
bool has_aux(const EmulatedProduct& p) {
  return p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || p.epilogue == CUBLASLT_EPILOGUE_DGELU;
}

// Supports types, shapes, strides and epilogues as in the manual. The gradient of the bias is not
// supported for widths that are no multiple of 32, so that tests cover the caller's fallback.
bool is_known(const EmulatedProduct& p, const EmulatedLayout& a, const EmulatedLayout& b,
              const EmulatedLayout& c) {
  const bool a_plain = p.a_operation == CUBLAS_OP_N, b_plain = p.b_operation == CUBLAS_OP_N;
  const int64_t m = a_plain ? a.rows : a.columns, k = a_plain ? a.columns : a.rows;
  const int64_t n = b_plain ? b.columns : b.rows, b_k = b_plain ? b.rows : b.columns;
  if (k != b_k || c.rows != m || c.columns != n) return false;
  if (p.tf32 && a.type != CUDA_R_32F) return false;
  if (a.type != b.type || (c.type != a.type && c.type != CUDA_R_32F)) return false;
  for (const EmulatedLayout* layout : {&a, &b, &c}) {
    const int64_t stride_bytes = layout->leading * size_of(layout->type);
    if (layout->leading < layout->rows || stride_bytes % kAlignmentBytes != 0) return false;
  }
  if (has_bias(p) && p.bias_type != c.type) return false;
  if (p.epilogue == CUBLASLT_EPILOGUE_BGRADB && n % 32 != 0) return false;
  if (!has_aux(p)) return true;
  return p.aux_type == c.type && p.aux_leading >= m && p.aux_leading % 8 == 0;
}

bool takes(const AddingOrder& order, const EmulatedProduct& p, const EmulatedLayout& b) {
  const bool odd = (p.b_operation == CUBLAS_OP_N ? b.columns : b.rows) % 2 != 0 ||
                   (p.b_operation == CUBLAS_OP_N ? b.rows : b.columns) % 2 != 0;
  return !order.even_only || !odd;
}

const AddingOrder& order_of(const cublasLtMatmulAlgo_t& algorithm) {
  return kAddingOrders[algorithm.data[0] % kOrders];
}

size_t workspace_of(const AddingOrder& order) {
  return order.parts > 1 ? kWorkspaceBytes : 0;
}

// The arguments of ...SetAttribute().
struct AttributeValue {
  const void* data;
  size_t size_bytes;

  template <typename To>
  cublasStatus_t copy_to(To& to) const {
    if (size_bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, data, size_bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
};

bool is_aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % kAlignmentBytes == 0;
}

}  // namespace
}  // namespace emulated_cuda

using namespace emulated_cuda;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (is_to_fail("cublasLtCreate")) return CUBLAS_STATUS_EXECUTION_FAILED;
  *handle = new EmulatedBlas{current_device()};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS"
                                         : "refused by the emulated cuBLASLt";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  *product = new EmulatedProduct;
  (*product)->tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size_bytes) {
  const AttributeValue given{value, size_bytes};
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return given.copy_to(product->a_operation);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return given.copy_to(product->b_operation);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return given.copy_to(product->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return given.copy_to(product->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return given.copy_to(product->bias_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return given.copy_to(product->aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return given.copy_to(product->aux_leading);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return given.copy_to(product->aux_type);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  *layout =
      new EmulatedLayout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t size_bytes) {
  const AttributeValue given{value, size_bytes};
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return given.copy_to(preference->workspace_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return given.copy_to(preference->schemes);
    default:
      return given.copy_to(
          preference->alignment_bytes[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES]);
  }
}

// Returns the algorithms in an order that rotates with the shape, so that each is the first for
// some shape. Those with the same order of additions (32, the even one, and the last) are
// interchangeable.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = 0;
  if (is_to_fail("cublasLtMatmulAlgoGetHeuristic")) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!is_known(*product, *a, *b, *c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const uint32_t bytes : preference->alignment_bytes) {
    if (bytes % kAlignmentBytes != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const auto turn = static_cast<uint64_t>(c->rows / 8 + c->columns / 8);
  for (uint64_t i = 0; i < kOrders && *found < wanted; ++i) {
    const uint64_t number = (i + turn) % kOrders;
    const AddingOrder& order = kAddingOrders[number];
    const bool fits = workspace_of(order) <= preference->workspace_bytes;
    const bool scheme = (preference->schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
    if (!takes(order, *product, *b) || !fits || (order.parts > 1 && !scheme)) continue;
    results[*found] = {.algo = {{number}},
                       .workspaceSize = workspace_of(order),
                       .state = CUBLAS_STATUS_SUCCESS,
                       .wavesCount = 1.0f};
    ++*found;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const AddingOrder& order = order_of(*algorithm);
  *result = {.algo = *algorithm,
             .workspaceSize = workspace_of(order),
             .state = CUBLAS_STATUS_SUCCESS,
             .wavesCount = 1.0f};
  const bool known = is_known(*product, *a, *b, *c) && takes(order, *product, *b);
  return known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t,
                                                    void* value, size_t size_bytes, size_t*) {
  const int32_t parts = order_of(*algorithm).parts;
  if (size_bytes != sizeof parts) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &parts, sizeof parts);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (is_to_fail("cublasLtMatmul")) return CUBLAS_STATUS_EXECUTION_FAILED;
  const AddingOrder& order = order_of(*algorithm);
  if (!is_known(*product, *a_layout, *b_layout, *c_layout) || !takes(order, *product, *b_layout)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const auto lock = Machine::lock();
  Machine& machine = Machine::one();
  const bool needs_work = workspace_of(order) > 0;
  for (const void* data : {a, b, c, static_cast<const void*>(d)}) {
    const Region* const region = machine.regions().of(data);
    if (region == nullptr || region->device != handle->device || !is_aligned(data)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (c != d || machine.device_of(stream) != handle->device ||
      (has_bias(*product) && product->bias == nullptr) ||
      (has_aux(*product) && (product->aux == nullptr || !is_aligned(product->aux))) ||
      (needs_work && (workspace == nullptr || workspace_bytes < workspace_of(order)))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Factors factors{.a = a,
                        .b = b,
                        .c = d,
                        .a_layout = *a_layout,
                        .b_layout = *b_layout,
                        .c_layout = *c_layout,
                        .alpha = *static_cast<const float*>(alpha),
                        .beta = *static_cast<const float*>(beta)};
  machine.append(stream, handle->device, [kept = *product, factors, order] {
    multiply(kept, factors, order);
    Machine::one().regions().check_guards();
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}
