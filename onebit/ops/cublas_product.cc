#include "onebit/ops/cublas_product.h"

#include <algorithm>
#include <bit>

#include "onebit/base/error.h"

namespace onebit::ops::cuda {
namespace {

void check(cublasStatus_t status, const char* call) {
  require(status == CUBLAS_STATUS_SUCCESS, "{}: {}", call, cublasLtGetStatusString(status));
}

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::kF32 ? CUDA_R_32F : dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_16F;
}

// The handle types of cuBLASLt with their ends of life.
template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Handle* put() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// cuBLASLt knows column-major matrices: a row-major one [rows, columns] is [columns, rows] to it.
// So c^T = b^T . a^T, with our b as its left operand.
struct Problem {
  Layout left, right, result;
  Description description;

  Problem(const Matmul& call, const void* bias) {
    const auto make = [](Layout& layout, DType dtype, int64_t rows, int64_t columns) {
      check(cublasLtMatrixLayoutCreate(layout.put(), type_of(dtype), static_cast<uint64_t>(columns),
                                       static_cast<uint64_t>(rows), columns),
            "cublasLtMatrixLayoutCreate");
    };
    const auto [m, n, k] = std::array{call.m, call.n, call.k};
    make(left, call.operands, call.b_transposed ? n : k, call.b_transposed ? k : n);
    make(right, call.operands, call.a_transposed ? k : m, call.a_transposed ? m : k);
    make(result, call.result, m, n);
    check(cublasLtMatmulDescCreate(description.put(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, call.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, call.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (bias == nullptr) return;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(call.result));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }
};

uint32_t alignment_bytes(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), 256));
}

// Batches of about the same number of tokens share an algorithm.
int64_t bucket_of(int64_t rows) {
  const int64_t step = rows <= 64 ? 8 : rows <= 512 ? 64 : 256;
  return (rows + step - 1) / step * step;
}

Matmul with_bucketed_rows(Matmul call) {
  int64_t& rows = call.rows == Matmul::Rows::kM ? call.m : call.k;
  rows = bucket_of(rows);
  return call;
}

cublasLtMatmulAlgo_t choose(CudaStream& door, const Matmul& call, const void* bias) {
  const Problem problem(call, bias);
  Preference preference;
  check(cublasLtMatmulPreferenceCreate(preference.put()), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{CudaStream::kWorkspaceBytes});
  // Where k is cut into parts, their sums stay f32 and are added in one order. The other schemes
  // round them to the result's type, or add them as they come.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_bytes(call.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_bytes(call.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_bytes(call.c));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_bytes(call.c));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(door.cublas(), problem.description.get(), problem.left.get(),
                                       problem.right.get(), problem.result.get(),
                                       problem.result.get(), preference.get(), 1, &best, &found),
        "cublasLtMatmulAlgoGetHeuristic");
  require(found > 0, "cuBLASLt has no algorithm for {} [{} x {}] . [{} x {}]",
          name_of(call.operands), call.m, call.k, call.k, call.n);
  return best.algo;
}

CudaStream::ProductKey key_of(const Matmul& call, const void* bias) {
  const Matmul like = with_bucketed_rows(call);
  return {like.m,
          like.n,
          like.k,
          static_cast<int64_t>(like.operands),
          static_cast<int64_t>(like.result),
          like.a_transposed,
          like.b_transposed,
          like.accumulate,
          alignment_bytes(bias),  // 0 without
          alignment_bytes(like.a),
          alignment_bytes(like.b),
          alignment_bytes(like.c)};
}

cublasStatus_t run(CudaStream& door, const Matmul& call, const void* bias,
                   const cublasLtMatmulAlgo_t& algorithm) {
  const Problem problem(call, bias);
  const float alpha = 1, beta = call.accumulate ? 1.0f : 0.0f;
  return cublasLtMatmul(door.cublas(), problem.description.get(), &alpha, call.b,
                        problem.left.get(), call.a, problem.right.get(), &beta, call.c,
                        problem.result.get(), call.c, problem.result.get(), &algorithm,
                        door.workspace(), CudaStream::kWorkspaceBytes, door.stream());
}

}  // namespace

bool suits_cublas(const Matmul& call) {
  const auto whole = [](int64_t columns, DType dtype, const void* data) {
    return columns * size_bytes_of(dtype) % 16 == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
  };
  return whole(call.a_transposed ? call.m : call.k, call.operands, call.a) &&
         whole(call.b_transposed ? call.k : call.n, call.operands, call.b) &&
         whole(call.n, call.result, call.c);
}

void cublas_product(CudaStream& door, const Matmul& call, const void* bias) {
  const auto key = key_of(call, bias);
  auto found = door.products().find(key);
  if (found == door.products().end()) {
    const auto algorithm = choose(door, with_bucketed_rows(call), bias);
    found = door.products().emplace(key, CudaStream::Product{algorithm}).first;
  }
  cublasStatus_t status = run(door, call, bias, found->second.algorithm);
  // An algorithm for the bucket may not take every number of rows in it.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    status = run(door, call, bias, choose(door, call, bias));
  }
  check(status, "cublasLtMatmul");
}

}  // namespace onebit::ops::cuda
