#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/dropout.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;

// One thread per eight columns of a row.
template <typename T>
__global__ void drop(const T* x, int64_t rows, int64_t columns, DropoutPlan plan, T* y) {
  const int64_t width = (columns + kEight - 1) / kEight;
  const int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t row = index / width, block = index % width;
  if (row >= rows) return;
  const int64_t at = row * columns + block * kEight, count = columns - block * kEight;
  Eight values = load_eight(x + at, count);
  drop_eight(values, plan, row_key_of(plan, row), static_cast<uint32_t>(block));
  store_eight(values, y + at, count);
}

}  // namespace

void dropout(Context& context, const DropoutForward& a) {
  const int64_t rows = a.x.extent(0), columns = a.x.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DropoutPlan plan(a.dropout);
  const unsigned blocks = blocks_of(rows * ((columns + kEight - 1) / kEight), kThreads);
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("dropout", cuda, blocks, kThreads, drop<T>, pointer<T>(a.x), rows, columns, plan,
           pointer<T>(a.y));
  });
}

}  // namespace onebit::ops::cuda
