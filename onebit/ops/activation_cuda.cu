#include "onebit/kernels/column_partials_cuda.h"
#include "onebit/kernels/kernel_cuda.h"
#include "onebit/ops/activation.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;
constexpr float kTanhLinear = 1.59576912161f, kTanhCubic = 0.0713548162726f;  // of 2 u

__device__ float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

__device__ float value_of(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return x * normcdff(x);
    case ActivationKind::kGeluTanh:
      return x * sigmoid(x * fmaf(x * x, kTanhCubic, kTanhLinear));
    case ActivationKind::kRelu:
      return x < 0.0f ? 0.0f : x;
    case ActivationKind::kSwish:
      return x * sigmoid(x);
    case ActivationKind::kTanh:
      break;
  }
  return tanhf(x);
}

// The derivative from what the forward pass saved: x, or the output for tanh.
__device__ float slope_of(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return fmaf(x, 0.398942280401f * expf(-0.5f * x * x), normcdff(x));
    case ActivationKind::kGeluTanh: {
      const float s = sigmoid(x * fmaf(x * x, kTanhCubic, kTanhLinear));
      const float slope = fmaf(x * x, 3 * kTanhCubic, kTanhLinear);
      return fmaf(x, s * (1.0f - s) * slope, s);
    }
    case ActivationKind::kRelu:
      return x > 0.0f ? 1.0f : 0.0f;
    case ActivationKind::kSwish: {
      const float s = sigmoid(x);
      return fmaf(x * s, 1.0f - s, s);
    }
    case ActivationKind::kTanh:
      break;
  }
  return fmaf(-x, x, 1.0f);
}

template <typename T>
__global__ void forward(ActivationKind kind, const T* x, T* y, int64_t count) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= count) return;
  Eight values = load_eight(x + at, count - at);
  for (int i = 0; i < kEight; ++i) values.lane[i] = value_of(kind, values.lane[i]);
  store_eight(values, y + at, count - at);
}

// Grid (columns, row blocks); a thread owns eight columns of its row block. grad_y and grad_x may
// be the same memory.
template <typename T>
__global__ void backward(ActivationKind kind, const T* grad_y, const T* saved, T* grad_x,
                         int64_t rows, int64_t columns, int64_t rows_per_block, float* partials) {
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (column >= columns) return;
  const int64_t first = int64_t{blockIdx.y} * rows_per_block;
  const int64_t last = min(rows, first + rows_per_block), count = columns - column;
  Eight sums;
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * columns + column;
    Eight grad = load_eight(grad_y + at, count);
    const Eight x = load_eight(saved + at, count);
    for (int i = 0; i < kEight; ++i) {
      grad.lane[i] *= slope_of(kind, x.lane[i]);
      sums.lane[i] += grad.lane[i];
    }
    store_eight(grad, grad_x + at, count);
  }
  if (partials != nullptr) store_eight(sums, partials + blockIdx.y * columns + column, count);
}

}  // namespace

void activation(Context& context, const Activation& a) {
  const int64_t count = a.x.elements();
  if (count == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("activation", cuda, blocks_of(count, kThreads * kEight), kThreads, forward<T>, a.kind,
           pointer<T>(a.x), pointer<T>(a.y), count);
  });
}

void activation_backward(Context& context, const ActivationBackward& a) {
  const int64_t rows = a.grad_y.extent(0), columns = a.grad_y.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const bool sums_bias = !a.grad_bias.empty();
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks, sums_bias ? columns : 0, 1);
  const dim3 grid(blocks_of(columns, kThreads * kEight), static_cast<unsigned>(blocks.count));
  with_device_type(a.grad_y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("activation_backward", cuda, grid, kThreads, backward<T>, a.kind, pointer<T>(a.grad_y),
           pointer<T>(a.saved), pointer<T>(a.grad_x), rows, columns, blocks.rows_per_block,
           sums_bias ? partials.data() : nullptr);
  });
  if (sums_bias) partials.add_to({a.grad_bias.data<float>()});
}

}  // namespace onebit::ops::cuda
