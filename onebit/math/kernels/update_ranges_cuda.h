// The optimizers' ranges and compute copies on a CUDA device. For *_update_cuda.cu only.
#pragma once

#include <span>

#include "onebit/math/kernels/blocks.h"
#include "onebit/math/kernels/kernel_cuda.h"

namespace onebit::kernels::cuda {

// The tensors of LAMB on a CUDA device. For *lamb_update_cuda.cu only.

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

// The ranges copied to scratch memory.
class DeviceRanges {
 public:
  DeviceRanges(CudaStream& cuda, std::span<const UpdateRange> ranges)
      : memory_(cuda.scratch().take(static_cast<int64_t>(ranges.size_bytes()))),
        count_(static_cast<int>(ranges.size())) {
    cuda.upload(memory_.data(), ranges.data(), static_cast<int64_t>(ranges.size_bytes()));
  }
  const UpdateRange* data() const { return memory_.as<UpdateRange>(); }
  int count() const { return count_; }

 private:
  Scratch::Block memory_;
  int count_;
};

struct RangeSettings {
  float decay = 0;
  double rate = 1;
};

// The settings of an element, or without ranges the defaults. The elements of one thread are in one
// range, since both are aligned to 8 or more.
__device__ inline RangeSettings settings_at(const UpdateRange* ranges, int count, int64_t element) {
  if (count == 0) return {};
  int low = 0, high = count - 1;  // the first range that ends after the element
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ranges[middle].end <= element) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {static_cast<float>(ranges[low].weight_decay), ranges[low].rate};
}

// bf16 or f16 memory to which new values are copied, or none.
struct ComputeCopy {
  explicit ComputeCopy(const View& view)
      : bf16(view.dtype() == DType::kBF16 ? pointer<__nv_bfloat16>(view) : nullptr),
        f16(view.dtype() == DType::kF16 ? pointer<__half>(view) : nullptr) {}

  __device__ void store(const Eight& values, int64_t at, int64_t count) const {
    if (bf16 != nullptr) store_eight(values, bf16 + at, count);
    if (f16 != nullptr) store_eight(values, f16 + at, count);
  }

  __nv_bfloat16* bf16;
  __half* f16;
};

}  // namespace onebit::kernels::cuda
