// Column sums on a CUDA device, with the same bits each time: rows are cut into blocks that depend
// only on their number, a thread block sums each, and the sums are added in a fixed order.
#pragma once

#include <array>
#include <cstdint>

#include "onebit/math/device/cuda_stream.h"

namespace onebit::kernels::cuda {

struct DeviceRowBlocks {
  explicit DeviceRowBlocks(int64_t row_count);
  int64_t rows, rows_per_block, count;
};

// Partial sums f32 [blocks, sums, columns] in scratch memory.
class DevicePartials {
 public:
  static constexpr int kMaxSums = 20;

  // `blocks`: their number.
  DevicePartials(CudaStream& cuda, int64_t blocks, int64_t columns, int sums);
  float* data() const { return memory_.as<float>(); }
  // destinations[sum] [columns] += the sum over blocks, where null destinations are skipped.
  void add_to(const std::array<float*, kMaxSums>& destinations);

 private:
  CudaStream& cuda_;
  int64_t blocks_, columns_;
  int sums_;
  Scratch::Block memory_;
};

}  // namespace onebit::kernels::cuda
