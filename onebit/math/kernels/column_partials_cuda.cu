#include "onebit/math/kernels/column_partials_cuda.h"

#include <algorithm>

#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/kernel_cuda.h"

namespace onebit::kernels::cuda {
namespace {

constexpr int kWays = 16;  // parts of a column summed side by side

struct Destinations {
  float* to[DevicePartials::kMaxSums];
};

struct Ways {
  float total[kWays][kWarp];
};

// Block (32, kWays): 32 columns of one sum.
__global__ void add_partials(const float* partials, int64_t blocks, int64_t columns, int sums,
                             Destinations destinations) {
  auto& parts = block_shared<Ways>().total;
  const int64_t column = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const int sum = static_cast<int>(blockIdx.y);
  float* to = destinations.to[sum];
  if (to == nullptr) return;
  float total = 0;
  if (column < columns) {
#pragma unroll 8
    for (int64_t block = threadIdx.y; block < blocks; block += kWays) {
      total += partials[(block * sums + sum) * columns + column];
    }
  }
  parts[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int way = 1; way < kWays; ++way) total += parts[way][threadIdx.x];
  to[column] += total;
}

}  // namespace

DeviceRowBlocks::DeviceRowBlocks(int64_t row_count)
    : rows(row_count),
      rows_per_block(std::clamp<int64_t>(row_count / 512, 4, 64)),
      count((row_count + rows_per_block - 1) / rows_per_block) {}

DevicePartials::DevicePartials(CudaStream& cuda, int64_t blocks, int64_t columns, int sums)
    : cuda_(cuda),
      blocks_(blocks),
      columns_(columns),
      sums_(sums),
      memory_(cuda.scratch().take(blocks * columns * sums * static_cast<int64_t>(sizeof(float)))) {
  ONEBIT_INVARIANT(sums <= kMaxSums);
}

void DevicePartials::add_to(const std::array<float*, kMaxSums>& destinations) {
  if (blocks_ == 0 || columns_ == 0) return;
  Destinations given;
  std::copy(destinations.begin(), destinations.end(), given.to);
  const dim3 grid(blocks_of(columns_, kWarp), static_cast<unsigned>(sums_));
  launch("add_partials", cuda_, grid, dim3(kWarp, kWays), add_partials, data(), blocks_, columns_,
         sums_, given);
}

}  // namespace onebit::kernels::cuda
