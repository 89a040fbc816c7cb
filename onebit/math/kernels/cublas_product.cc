#include "onebit/math/kernels/cublas_product.h"

#include "onebit/math/kernels/cublas_choice.h"
#include "onebit/math/kernels/cublas_problem.h"

namespace onebit::kernels::cuda {
namespace {

CudaStream::ProductKey key_of(const MatrixProduct& p, int64_t tokens) {
  const int64_t options = p.a_transposed | p.b_transposed << 1 | p.accumulate << 2 | p.tf32 << 3;
  const ConstView beside = p.saved.empty() ? ConstView(p.pre_activation) : p.saved;
  return {tokens,
          p.n(),
          p.a_transposed ? p.m() : p.k(),
          static_cast<int64_t>(p.a.dtype()),
          static_cast<int64_t>(p.c.dtype()),
          options,
          static_cast<int64_t>(p.epilogue),
          alignment_bytes(p.a.raw()),
          alignment_bytes(p.b.raw()),
          alignment_bytes(p.c.raw()),
          alignment_bytes(beside.raw())};
}

}  // namespace

bool suits_cublas(const MatrixProduct& p) {
  const auto whole = [](const ConstView& matrix) {
    return matrix.empty() || (matrix.extent(1) * size_bytes_of(matrix.dtype()) % 16 == 0 &&
                              reinterpret_cast<uintptr_t>(matrix.raw()) % 16 == 0);
  };
  return whole(p.a) && whole(p.b) && whole(p.c) && whole(p.pre_activation) && whole(p.saved);
}

bool cublas_product(CudaStream& cuda, const MatrixProduct& p, void* vector) {
  const CublasProblem problem(p, vector);
  const int64_t tokens = p.a.extent(0);
  const TokenRange around = tokens_around(tokens);
  // The heuristic's algorithm for the last number of tokens in a range may not accept others in it.
  // These have their own.
  auto& known = cuda.products();
  const auto exact = key_of(p, tokens), shared = key_of(p, around.last);
  auto found = known.find(exact);
  if (found == known.end()) found = known.find(shared);
  if (found == known.end()) {
    found = known.emplace(shared, choose_algorithm(cuda, p, vector, around)).first;
  }
  if (!found->second) return false;
  cublasStatus_t status = problem.run(cuda, *found->second);
  const bool refused =
      status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
  if (refused && found->first != exact) {
    found = known.emplace(exact, choose_algorithm(cuda, p, vector, {tokens, tokens})).first;
    if (!found->second) return false;
    status = problem.run(cuda, *found->second);
  }
  check_cublas(status, "cublasLtMatmul");
  return true;
}

}  // namespace onebit::kernels::cuda
