#include <algorithm>

#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1024;

struct Square {
  __device__ static double term(float x) { return double{x} * double{x}; }
};
struct Magnitude {
  __device__ static double term(float x) { return fabs(double{x}); }
};

struct TotalsOfWarps {
  double of[kThreads / kWarp];
};

__device__ double block_total(double mine) {
  auto& partial = block_shared<TotalsOfWarps>().of;
  mine = warp_sum(mine);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = mine;
  __syncthreads();
  double total = 0;
  for (const double one : partial) total += one;
  return total;
}

// One sum per block, in f64. Which elements a thread adds depends only on their number.
template <class Kind>
__global__ void partial_sums(const float* x, int64_t count, double* partials) {
  double sum = 0;
  const int64_t stride = int64_t{gridDim.x} * kThreads * kEight;
  for (int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight; at < count;
       at += stride) {
    const Eight values = load_eight(x + at, count - at);
    for (int i = 0; i < kEight; ++i) sum += Kind::term(values.lane[i]);
  }
  sum = block_total(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// One thread block adds the sums of all blocks, in a fixed order.
__global__ void total_sum(const double* partials, int count, double* total) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += partials[i];
  sum = block_total(sum);
  if (threadIdx.x == 0) *total = sum;
}

template <class Kind>
double reduce(Context& context, const ConstView& x) {
  const int64_t count = x.elements();
  if (count == 0) return 0;
  CudaStream& cuda = CudaStream::of(context);
  const unsigned blocks =
      static_cast<unsigned>(std::min<int64_t>(blocks_of(count, kThreads * kEight), kMaxBlocks));
  const auto memory = cuda.scratch().take((blocks + 1) * static_cast<int64_t>(sizeof(double)));
  double* partials = memory.as<double>();
  launch("partial_sums", cuda, blocks, kThreads, partial_sums<Kind>, x.data<float>(), count,
         partials);
  launch("total_sum", cuda, 1, kThreads, total_sum, partials, static_cast<int>(blocks),
         partials + blocks);
  double total = 0;
  cuda.download(&total, partials + blocks, sizeof total);
  return total;
}

// Sets `found`, which is 0 at the start, if an element is not finite.
template <typename T>
__global__ void look_for_non_finite(const T* x, int64_t count, int* found) {
  bool bad = false;
  const int64_t stride = int64_t{gridDim.x} * kThreads * kEight;
  for (int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight; at < count;
       at += stride) {
    const Eight values = load_eight(x + at, count - at);
    for (int i = 0; i < kEight; ++i) bad = bad || !isfinite(values.lane[i]);
  }
  if (__syncthreads_or(bad) != 0 && threadIdx.x == 0) *found = 1;
}

// Grid (columns, row blocks), where a thread owns eight columns of its row block.
template <typename T>
__global__ void partial_column_sums(const T* x, int64_t rows, int64_t columns,
                                    int64_t rows_per_block, float* partials) {
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (column >= columns) return;
  const int64_t first = int64_t{blockIdx.y} * rows_per_block;
  const int64_t last = min(rows, first + rows_per_block), count = columns - column;
  Eight sums;
  for (int64_t row = first; row < last; ++row) {
    const Eight values = load_eight(x + row * columns + column, count);
    for (int i = 0; i < kEight; ++i) sums.lane[i] += values.lane[i];
  }
  store_eight(sums, partials + blockIdx.y * columns + column, count);
}

}  // namespace

double squared_norm(Context& context, ConstView x) {
  return reduce<Square>(context, x);
}

double absolute_sum(Context& context, ConstView x) {
  return reduce<Magnitude>(context, x);
}

bool all_finite(Context& context, ConstView x) {
  const int64_t count = x.elements();
  if (count == 0) return true;
  CudaStream& cuda = CudaStream::of(context);
  const auto memory = cuda.scratch().take(sizeof(int));
  int* found = memory.as<int>();
  check_cuda(cudaMemsetAsync(found, 0, sizeof(int), cuda.stream()), "cudaMemsetAsync");
  const unsigned blocks =
      static_cast<unsigned>(std::min<int64_t>(blocks_of(count, kThreads * kEight), kMaxBlocks));
  with_device_type(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("all_finite", cuda, blocks, kThreads, look_for_non_finite<T>, pointer<T>(x), count,
           found);
  });
  int result = 0;
  cuda.download(&result, found, sizeof result);
  return result == 0;
}

void column_sum(Context& context, const ColumnSum& a) {
  const int64_t rows = a.x.extent(0), columns = a.x.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks.count, columns, 1);
  const dim3 grid(blocks_of(columns, kThreads * kEight), static_cast<unsigned>(blocks.count));
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("column_sum", cuda, grid, kThreads, partial_column_sums<T>, pointer<T>(a.x), rows,
           columns, blocks.rows_per_block, partials.data());
  });
  partials.add_to({a.sum.data<float>()});
}

}  // namespace onebit::ops::cuda
