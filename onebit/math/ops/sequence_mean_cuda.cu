#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/sequence_mean.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 128;

// One thread block per sequence, eight columns per thread: the order of the sum over rows is fixed.
template <typename T>
__global__ void mean(const T* x, const int32_t* starts, int64_t columns, float* y) {
  const int64_t sequence = blockIdx.x, first = starts[sequence], end = starts[sequence + 1];
  const float part = 1.0f / static_cast<float>(end - first);
  for (int64_t at = int64_t{threadIdx.x} * kEight; at < columns; at += kThreads * kEight) {
    const int64_t count = columns - at;
    Eight sum;
    for (int64_t row = first; row < end; ++row) {
      const Eight values = load_eight(x + row * columns + at, count);
      for (int i = 0; i < kEight; ++i) sum.lane[i] += values.lane[i];
    }
    for (int i = 0; i < kEight; ++i) sum.lane[i] *= part;
    store_eight(sum, y + sequence * columns + at, count);
  }
}

template <typename T>
__global__ void mean_backward(const float* grad_y, const int32_t* starts, int64_t columns,
                              T* grad_x) {
  const int64_t sequence = blockIdx.x, first = starts[sequence], end = starts[sequence + 1];
  const float part = 1.0f / static_cast<float>(end - first);
  for (int64_t at = int64_t{threadIdx.x} * kEight; at < columns; at += kThreads * kEight) {
    const int64_t count = columns - at;
    Eight values = load_eight(grad_y + sequence * columns + at, count);
    for (int i = 0; i < kEight; ++i) values.lane[i] *= part;
    for (int64_t row = first; row < end; ++row) {
      store_eight(values, grad_x + row * columns + at, count);
    }
  }
}

}  // namespace

void sequence_mean(Context& context, const SequenceMean& a) {
  const int64_t sequences = a.y.extent(0), columns = a.x.extent(1);
  if (sequences * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("sequence_mean", cuda, static_cast<unsigned>(sequences), kThreads, mean<T>,
           pointer<T>(a.x), a.sequence_starts.device.data<int32_t>(), columns, a.y.data<float>());
  });
}

void sequence_mean_backward(Context& context, const SequenceMeanBackward& a) {
  const int64_t sequences = a.grad_y.extent(0), columns = a.grad_x.extent(1);
  if (sequences * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.grad_x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("sequence_mean_backward", cuda, static_cast<unsigned>(sequences), kThreads,
           mean_backward<T>, a.grad_y.data<float>(), a.sequence_starts.device.data<int32_t>(),
           columns, pointer<T>(a.grad_x));
  });
}

}  // namespace onebit::ops::cuda
