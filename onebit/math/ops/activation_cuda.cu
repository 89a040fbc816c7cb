#include "onebit/math/kernels/approximate_cuda.h"
#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/activation.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostRows = 65535;  // of a grid's second extent
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

// Any activation, exact to a few units of f32.
struct Exact {
  ActivationKind kind;
  __device__ float value(float x) const { return value_of(kind, x); }
  __device__ float slope(float x) const { return slope_of(kind, x); }
  // The derivative at x, of every activation.
  __device__ float slope_at(float x) const {
    return slope_of(kind, kind == ActivationKind::kTanh ? tanhf(x) : x);
  }
};

// GELU with erf for results of 16 bits: the normal distribution to 1.5e-7 by Abramowitz and Stegun,
// 7.1.26, which costs a third of normcdff.
struct ShortGelu {
  struct Normal {
    float density, distribution;  // density: times the square root of 2 pi
  };
  static __device__ Normal normal(float x) {
    constexpr float kHalfLog2E = 0.721347520444f, kScale = 0.231641888f;  // 0.3275911 / sqrt(2)
    const float density = approximate_exp2(-kHalfLog2E * x * x);
    const float t = approximate_reciprocal(fmaf(kScale, fabsf(x), 1.0f));
    float sum = fmaf(1.061405429f, t, -1.453152027f);
    sum = fmaf(sum, t, 1.421413741f);
    sum = fmaf(sum, t, -0.284496736f);
    sum = fmaf(sum, t, 0.254829592f);
    const float tail = 0.5f * density * sum * t;
    return {density, x < 0.0f ? tail : 1.0f - tail};
  }
  __device__ float value(float x) const { return x * normal(x).distribution; }
  __device__ float slope(float x) const {
    const Normal at = normal(x);
    return fmaf(x * 0.398942280401f, at.density, at.distribution);
  }
  __device__ float slope_at(float x) const { return slope(x); }
};

// One thread per eight elements.
template <typename T, class Function>
__global__ void forward(Function function, const T* x, T* y, int64_t count) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= count) return;
  Eight values = load_eight(x + at, count - at);
  for (int i = 0; i < kEight; ++i) values.lane[i] = function.value(values.lane[i]);
  store_eight(values, y + at, count - at);
}

template <typename T>
struct Backward {
  const T *grad_y, *saved;
  T* grad_x;  // may be grad_y
  int64_t rows, columns, rows_per_block;
  float* partials;  // may be null
};

template <class Function>
__device__ void multiply_slopes(const Function& function, const Eight& x, Eight& grad,
                                Eight& sums) {
  for (int i = 0; i < kEight; ++i) {
    grad.lane[i] *= function.slope(x.lane[i]);
    sums.lane[i] += grad.lane[i];
  }
}

// Grid (columns, row blocks), where a thread owns eight columns of its row block. kWhole: all eight
// exist and are aligned, and kAtOnce rows are then read together.
template <bool kWhole, typename T, class Function>
__global__ void backward(Function function, Backward<T> a) {
  constexpr int kAtOnce = 4;
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (column >= a.columns) return;
  int64_t row = int64_t{blockIdx.y} * a.rows_per_block;
  const int64_t last = min(a.rows, row + a.rows_per_block), count = a.columns - column;
  Eight sums;
  if constexpr (kWhole) {
    for (; row + kAtOnce <= last; row += kAtOnce) {
      const int64_t at = row * a.columns + column;
      Eight grad[kAtOnce], x[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        grad[i] = load_whole(a.grad_y + at + i * a.columns);
        x[i] = load_whole(a.saved + at + i * a.columns);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        multiply_slopes(function, x[i], grad[i], sums);
        store_whole(grad[i], a.grad_x + at + i * a.columns);
      }
    }
  }
  for (; row < last; ++row) {
    const int64_t at = row * a.columns + column;
    Eight grad = load_eight(a.grad_y + at, count);
    multiply_slopes(function, load_eight(a.saved + at, count), grad, sums);
    store_eight(grad, a.grad_x + at, count);
  }
  if (a.partials != nullptr) {
    store_eight(sums, a.partials + blockIdx.y * a.columns + column, count);
  }
}

// One thread per eight elements of a row of y, in a grid of (columns, rows).
template <typename T, class Function>
__global__ void gated_forward(Function function, const T* x, T* y, int64_t columns) {
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (column >= columns) return;
  const int64_t row = blockIdx.y, count = columns - column;
  const T* from = x + 2 * row * columns + column;
  Eight values, factors;
  load_eight_of_both(from, from + columns, count, values, factors);
  for (int i = 0; i < kEight; ++i) {
    values.lane[i] = function.value(values.lane[i]) * factors.lane[i];
  }
  store_eight(values, y + row * columns + column, count);
}

template <typename T>
struct GatedBackward {
  const T *grad_y, *x;
  T* grad_x;  // may be x
  int64_t rows, columns, rows_per_block;
  float* partials;  // [blocks, 2 * columns], may be null
};

// Grid (columns, row blocks), where a thread owns eight columns of both halves in its row block.
template <typename T, class Function>
__global__ void gated_backward(Function function, GatedBackward<T> a) {
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (column >= a.columns) return;
  const int64_t first = int64_t{blockIdx.y} * a.rows_per_block, count = a.columns - column;
  Eight gate_sums, factor_sums;
  for (int64_t row = first; row < min(a.rows, first + a.rows_per_block); ++row) {
    const int64_t at = 2 * row * a.columns + column;
    const Eight grad = load_eight(a.grad_y + row * a.columns + column, count);
    Eight gate, factor;
    load_eight_of_both(a.x + at, a.x + at + a.columns, count, gate, factor);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      const float value = function.value(gate.lane[i]);
      gate.lane[i] = grad.lane[i] * factor.lane[i] * function.slope_at(gate.lane[i]);
      factor.lane[i] = grad.lane[i] * value;
      gate_sums.lane[i] += gate.lane[i];
      factor_sums.lane[i] += factor.lane[i];
    }
    store_eight(gate, a.grad_x + at, count);
    store_eight(factor, a.grad_x + at + a.columns, count);
  }
  if (a.partials == nullptr) return;
  float* sums = a.partials + 2 * blockIdx.y * a.columns + column;
  store_eight(gate_sums, sums, count);
  store_eight(factor_sums, sums + a.columns, count);
}

// Calls body(function) with what computes the activation for results of type T.
template <typename T, class Body>
void with_function(ActivationKind kind, const Body& body) {
  if constexpr (sizeof(T) == 2) {
    if (kind == ActivationKind::kGeluErf) return body(ShortGelu{});
  }
  body(Exact{kind});
}

}  // namespace

void activation(Context& context, const Activation& a) {
  const int64_t count = a.x.elements();
  if (count == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    with_function<T>(a.kind, [&](auto function) {
      launch("activation", cuda, blocks_of(count, kThreads * kEight), kThreads,
             forward<T, decltype(function)>, function, pointer<T>(a.x), pointer<T>(a.y), count);
    });
  });
}

void activation_backward(Context& context, const ActivationBackward& a) {
  const int64_t rows = a.grad_y.extent(0), columns = a.grad_y.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const bool sums_bias = !a.grad_bias.empty();
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks.count, sums_bias ? columns : 0, 1);
  const dim3 grid(blocks_of(columns, kThreads * kEight), static_cast<unsigned>(blocks.count));
  with_device_type(a.grad_y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const Backward<T> call{.grad_y = pointer<T>(a.grad_y),
                           .saved = pointer<T>(a.saved),
                           .grad_x = pointer<T>(a.grad_x),
                           .rows = rows,
                           .columns = columns,
                           .rows_per_block = blocks.rows_per_block,
                           .partials = sums_bias ? partials.data() : nullptr};
    const bool whole = columns % kEight == 0 && are_aligned({call.grad_y, call.saved, call.grad_x});
    with_function<T>(a.kind, [&](auto function) {
      using Function = decltype(function);
      launch("activation_backward", cuda, grid, kThreads,
             whole ? backward<true, T, Function> : backward<false, T, Function>, function, call);
    });
  });
  if (sums_bias) partials.add_to({a.grad_bias.data<float>()});
}

void gated_activation(Context& context, const GatedActivation& a) {
  const int64_t rows = a.y.extent(0), columns = a.y.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const unsigned blocks = blocks_of(columns, kThreads * kEight);
  with_device_type(a.y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    with_function<T>(a.kind, [&](auto function) {
      // The second extent of a grid has a limit.
      for (int64_t first = 0; first < rows; first += kMostRows) {
        const unsigned count = static_cast<unsigned>(std::min(kMostRows, rows - first));
        launch("gated_activation", cuda, dim3(blocks, count), kThreads,
               gated_forward<T, decltype(function)>, function,
               pointer<T>(a.x) + 2 * first * columns, pointer<T>(a.y) + first * columns, columns);
      }
    });
  });
}

void gated_activation_backward(Context& context, const GatedActivationBackward& a) {
  const int64_t rows = a.grad_y.extent(0), columns = a.grad_y.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const bool sums_bias = !a.grad_bias.empty();
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks.count, sums_bias ? 2 * columns : 0, 1);
  const dim3 grid(blocks_of(columns, kThreads * kEight), static_cast<unsigned>(blocks.count));
  with_device_type(a.grad_y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const GatedBackward<T> call{.grad_y = pointer<T>(a.grad_y),
                                .x = pointer<T>(a.x),
                                .grad_x = pointer<T>(a.grad_x),
                                .rows = rows,
                                .columns = columns,
                                .rows_per_block = blocks.rows_per_block,
                                .partials = sums_bias ? partials.data() : nullptr};
    with_function<T>(a.kind, [&](auto function) {
      launch("gated_activation_backward", cuda, grid, kThreads,
             gated_backward<T, decltype(function)>, function, call);
    });
  });
  if (sums_bias) partials.add_to({a.grad_bias.data<float>()});
}

}  // namespace onebit::ops::cuda
