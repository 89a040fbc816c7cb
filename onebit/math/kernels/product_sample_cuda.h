// A matrix product for measurements, with operands whose sums are exactly zero. Along k the second
// half of a is the first one negated and shuffled, and the half of b is shuffled alike, so that the
// result consists only of the rounding errors of the order in which the products were added. The
// shuffle ensures that an algorithm that adds the halves separately does not cancel its own errors.
#pragma once

#include <cstdint>

#include "onebit/math/device/buffer.h"
#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/kernels/matrix_product.h"

namespace onebit::kernels::cuda {

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
