// One matrix product by cuBLASLt, with its epilogue. The algorithm is chosen once per kind of
// product and kept by the stream.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/kernels/matrix_product.h"

namespace onebit::kernels::cuda {

// A matrix product in cuBLASLt's terms: descriptors and their destruction.
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
  // `vector`: as for the product itself.
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

// Chooses cuBLASLt's algorithm for a matrix product: the fastest one, measured at the first product
// of its kind, among those that give the same bits.
//
// Algorithms differ in tiles and in the order of additions, which determines the last bits. Two
// runs must agree bit for bit, and measurements vary. So a measurement may only choose among
// algorithms that add in the order of the first one that cuBLASLt's heuristic names, which follows
// from the shape, the library and the device. A sample reveals the order: its sums are exactly
// zero, so that the result contains only the rounding errors of the order (ProductSample).
// If the sum is over tokens, the sample has numbers of tokens with every remainder by the existing
// tiles.
//
// Algorithms that split k into parts may split it differently for another k: they are used if the
// heuristic names them first, and never chosen by measurement. A measured algorithm must also
// accept every number of tokens for which it is chosen, as must the first: a replacement would add
// in another order.
//
// The heuristic's first algorithm computes products too small to be worth a measurement, and those
// for which there is no memory. This changes their speed, never their bits.

// Numbers of tokens that share an algorithm: the heuristic is called for the last.
struct TokenRange {
  int64_t first, last;
};
// The range around `tokens`: eight to an octave.
TokenRange tokens_around(int64_t tokens);

// Chooses for products with these numbers of tokens that otherwise equal this one. Empty if
// cuBLASLt cannot compute them. Measures, and so waits for the device. `vector`: as for
// the product itself.
std::optional<cublasLtMatmulAlgo_t> choose_algorithm(CudaStream& cuda, const MatrixProduct& product,
                                                     void* vector, TokenRange tokens);

// The largest power of two, at most 256, that divides the address, or 0 for null.
uint32_t alignment_bytes(const void* data);

// Whether cuBLASLt accepts this product: rows and pointers are multiples of 16 bytes.
bool suits_cublas(const MatrixProduct& product);

// `vector` is the bias in c's type, or for kRowSums f32 [m], overwritten, and otherwise null.
// Returns false, without any effect, if cuBLASLt has no algorithm for the product.
bool cublas_product(CudaStream& cuda, const MatrixProduct& product, void* vector);

// A matrix product for measurements, with operands whose sums are exactly zero. Along k the second
// half of a is the first one negated and shuffled, and the half of b is shuffled alike, so that the
// result consists only of the rounding errors of the order in which the products were added. The
// shuffle ensures that an algorithm that adds the halves separately does not cancel its own errors.
class ProductSample {
 public:
  // Whether there is memory for a sample in addition to reserved memory.
  static bool fits(const MatrixProduct& like);
  // A sample with the shape, types and epilogue of `like`. The bias is zero, as are the values to
  // which c is added and those at which the activation's gradient is computed.
  ProductSample(CudaStream& cuda, const MatrixProduct& like);

  const MatrixProduct& product() const { return product_; }
  void* vector() const { return vector_.data(); }
  // Clears the memory that the product writes or adds to.
  void clear();
  // A number that differs if any written bit does, with probability 1 - 2^-64. Waits for it.
  uint64_t fingerprint();

 private:
  CudaStream& cuda_;
  MatrixProduct product_;
  Buffer a_, b_, c_, beside_, vector_, sum_;
};

}  // namespace onebit::kernels::cuda
