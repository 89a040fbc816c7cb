// The tensors of LAMB on a CUDA device. For *lamb_update_cuda.cu only.
#pragma once

#include <span>

#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/kernels/lamb_tensor.h"

namespace onebit::kernels::cuda {

// A thread block processes one block of elements, so it never contains two tensors either.
constexpr int kLambThreads = kBlockElements / kEight;

struct LambTensors {
  const LambTensor* all;
  int count;

  // The tensor that a block belongs to.
  __device__ int of_block(int64_t block) const {
    int low = 0, high = count - 1;  // the last tensor that begins at or before the block
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (all[middle].first_block > block) {
        high = middle - 1;
      } else {
        low = middle;
      }
    }
    return low;
  }
  __device__ int64_t end_block(int tensor, int64_t blocks) const {
    return tensor + 1 < count ? all[tensor + 1].first_block : blocks;
  }
  // A thread's first element of the block, and how many of its eight belong to the tensor: 0 or
  // less past the end.
  __device__ int64_t begin(const LambTensor& tensor, int64_t block) const {
    return tensor.begin + (block - tensor.first_block) * kBlockElements +
           int64_t{threadIdx.x} * kEight;
  }
};

// The tensors copied to scratch memory.
class DeviceLambTensors {
 public:
  DeviceLambTensors(CudaStream& cuda, std::span<const LambTensor> tensors)
      : memory_(cuda.scratch().take(static_cast<int64_t>(tensors.size_bytes()))),
        tensors_{memory_.as<LambTensor>(), static_cast<int>(tensors.size())} {
    cuda.upload(memory_.data(), tensors.data(), static_cast<int64_t>(tensors.size_bytes()));
  }
  const LambTensors& tensors() const { return tensors_; }

 private:
  Scratch::Block memory_;
  LambTensors tensors_;
};

}  // namespace onebit::kernels::cuda
