#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/kernels/norm_cuda.h"
#include "onebit/math/ops/layer_norm.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

struct Parameters {
  const float *gamma, *beta;
  float *mean, *inverse_stddev;  // null in evaluation
  float epsilon;
};

template <typename T>
__global__ void forward(const T* x, int64_t hidden, Parameters parameters, T* y) {
  const int64_t row = blockIdx.x, column = int64_t{threadIdx.x} * kEight, count = hidden - column;
  const Eight values = load_eight(x + row * hidden + column, count);
  const RowStatistics statistics = row_statistics(values, count, hidden, parameters.epsilon);
  const Eight gamma = load_eight(parameters.gamma + column, count);
  const Eight beta = load_eight(parameters.beta + column, count);
  store_eight(normalised(values, statistics, gamma, beta), y + row * hidden + column, count);
  if (threadIdx.x == 0 && parameters.mean != nullptr) {
    parameters.mean[row] = statistics.mean;
    parameters.inverse_stddev[row] = statistics.inverse_stddev;
  }
}

enum Sum { kGamma, kBeta, kSums };

// One thread block per block of rows. grad_x may be grad_y.
template <typename T>
__global__ void backward(const T* grad_y, NormSource<T> source, const float* gamma, int64_t hidden,
                         DeviceRowBlocks blocks, T* grad_x, float* partials) {
  const int64_t column = int64_t{threadIdx.x} * kEight, count = hidden - column;
  const Eight scale = load_eight(gamma + column, count);
  const int64_t first = int64_t{blockIdx.x} * blocks.rows_per_block;
  const int64_t last = min(blocks.rows, first + blocks.rows_per_block);
  Eight gamma_sum, beta_sum;
  const MeanOf mean_of(hidden);
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * hidden + column;
    const Eight x_hat = source.x_hat(row, hidden, column, scale);
    const Eight grad = norm_gradient(load_eight(grad_y + at, count), x_hat, scale, row, mean_of,
                                     source.inverse_stddev[row], gamma_sum, beta_sum);
    store_eight(grad, grad_x + at, count);
  }
  float* sums = partials + int64_t{blockIdx.x} * kSums * hidden + column;
  store_eight(gamma_sum, sums + kGamma * hidden, count);
  store_eight(beta_sum, sums + kBeta * hidden, count);
}

}  // namespace

void layer_norm(Context& context, const LayerNorm& a) {
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1);
  if (rows * hidden == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const Parameters parameters{a.gamma.data<float>(), a.beta.data<float>(), a.mean.data<float>(),
                              a.inverse_stddev.data<float>(), a.epsilon};
  const unsigned threads = row_threads(hidden, "layer_norm");
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("layer_norm", cuda, static_cast<unsigned>(rows), threads, forward<T>, pointer<T>(a.x),
           hidden, parameters, pointer<T>(a.y));
  });
}

void layer_norm_backward(Context& context, const LayerNormBackward& a) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  if (rows * hidden == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks.count, hidden, kSums);
  const unsigned threads = row_threads(hidden, "layer_norm_backward");
  with_device_type(a.grad_y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const NormSource<T> source{pointer<T>(a.x), pointer<T>(a.y), a.mean.data<float>(),
                               a.inverse_stddev.data<float>(), a.beta.data<float>()};
    launch("layer_norm_backward", cuda, static_cast<unsigned>(blocks.count), threads, backward<T>,
           pointer<T>(a.grad_y), source, a.gamma.data<float>(), hidden, blocks,
           pointer<T>(a.grad_x), partials.data());
  });
  partials.add_to({a.grad_gamma.data<float>(), a.grad_beta.data<float>()});
}

}  // namespace onebit::ops::cuda
