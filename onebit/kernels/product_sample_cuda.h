// A matrix product to measure on: operands whose sums are exactly zero. Along k the second half of
// a is the first one negated and shuffled, that of b shuffled alike, so that what is left in the
// result is the rounding errors of the order in which the products were added, and nothing else.
// Shuffled, since an algorithm that adds the halves apart must not cancel its own errors.
#pragma once

#include <cstdint>

#include "onebit/device/buffer.h"
#include "onebit/device/cuda_stream.h"
#include "onebit/kernels/matrix_product.h"

namespace onebit::kernels::cuda {

class ProductSample {
 public:
  // Whether there is memory for a sample besides what is reserved.
  static bool fits(const MatrixProduct& like);
  // A sample with the shape, types and epilogue of `like`. The bias is zero, as are the values that
  // c is added to and at which the activation's gradient is taken.
  ProductSample(CudaStream& cuda, const MatrixProduct& like);

  const MatrixProduct& product() const { return product_; }
  void* vector() const { return vector_.data(); }
  // Clears what the product writes, and what it adds to.
  void clear();
  // A number that differs, but for one time in 2^64, where any written bit does. Waits for it.
  uint64_t fingerprint();

 private:
  CudaStream& cuda_;
  MatrixProduct product_;
  Buffer a_, b_, c_, beside_, vector_, sum_;
};

}  // namespace onebit::kernels::cuda
