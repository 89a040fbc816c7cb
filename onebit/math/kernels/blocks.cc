#include "onebit/math/kernels/blocks.h"

#include "onebit/ground/base/error.h"

namespace onebit::kernels {

void check_lamb_tensors(std::span<const LambTensor> tensors, int64_t elements) {
  int64_t end = 0, block = 0;
  for (const LambTensor& tensor : tensors) {
    ONEBIT_INVARIANT(tensor.begin == end && tensor.end > tensor.begin);
    ONEBIT_INVARIANT(tensor.first_block == block);
    end = tensor.end;
    block = tensor.end_block();
  }
  ONEBIT_INVARIANT(end == elements);
}

}  // namespace onebit::kernels
