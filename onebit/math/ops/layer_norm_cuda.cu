#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/kernels/norm_cuda.h"
#include "onebit/math/ops/layer_norm.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

struct Parameters {
  NormKind kind;
  const float *gamma, *beta;     // beta may be null
  float *mean, *inverse_stddev;  // null in evaluation, the mean for kRms as well
  float epsilon;

  __device__ void store(int64_t row, RowStatistics statistics) const {
    if (threadIdx.x > 0 || inverse_stddev == nullptr) return;
    inverse_stddev[row] = statistics.inverse_stddev;
    if (mean != nullptr) mean[row] = statistics.mean;
  }
};

// The means of the rows, or null for an RMS norm, which subtracts none.
template <class A>
float* mean_of(const A& a) {
  return a.kind == NormKind::kLayer ? const_cast<float*>(a.mean.template data<float>()) : nullptr;
}

// A is LayerNorm or ResidualNorm.
template <class A>
Parameters parameters_of(const A& a) {
  return {a.kind,     a.gamma.template data<float>(),          a.beta.template data<float>(),
          mean_of(a), a.inverse_stddev.template data<float>(), a.epsilon};
}

// One thread block per row, eight columns per thread.
template <typename T>
__global__ void forward(const T* x, int64_t hidden, Parameters parameters, T* y) {
  const int64_t row = blockIdx.x, column = int64_t{threadIdx.x} * kEight, count = hidden - column;
  const Eight values = load_eight(x + row * hidden + column, count);
  const RowStatistics statistics =
      row_statistics(parameters.kind, values, count, hidden, parameters.epsilon);
  const Eight gamma = load_eight(parameters.gamma + column, count);
  const Eight beta = load_beta(parameters.beta, column, hidden);
  store_eight(normalised(values, statistics, gamma, beta), y + row * hidden + column, count);
  parameters.store(row, statistics);
}

// Sums over the rows; layer_norm has no bias.
enum Sum { kGamma, kBeta, kBias };
constexpr int kSums = kBias, kResidualSums = kBias + 1;

// One thread block per block of rows. grad_x may be grad_y.
template <typename T>
__global__ void backward(NormKind kind, const T* grad_y, NormSource<T> source, const float* gamma,
                         int64_t hidden, DeviceRowBlocks blocks, T* grad_x, float* partials) {
  const int64_t column = int64_t{threadIdx.x} * kEight, count = hidden - column;
  const Eight scale = load_eight(gamma + column, count);
  const int64_t first = int64_t{blockIdx.x} * blocks.rows_per_block;
  const int64_t last = min(blocks.rows, first + blocks.rows_per_block);
  Eight gamma_sum, beta_sum;
  const MeanOf mean(hidden);
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * hidden + column;
    const Eight x_hat = source.x_hat(row, hidden, column, scale);
    const Eight grad = norm_gradient(kind, load_eight(grad_y + at, count), x_hat, scale, row, mean,
                                     source.inverse_stddev[row], gamma_sum, beta_sum);
    store_eight(grad, grad_x + at, count);
  }
  float* sums = partials + int64_t{blockIdx.x} * kSums * hidden + column;
  store_eight(gamma_sum, sums + kGamma * hidden, count);
  store_eight(beta_sum, sums + kBeta * hidden, count);
}

// A is LayerNormBackward or ResidualNormBackward, and `input` the norm's input, or empty.
template <typename T, class A>
NormSource<T> source_of(const A& a, const ConstView& input) {
  return {pointer<T>(input), pointer<T>(a.y), input.empty() ? nullptr : mean_of(a),
          a.inverse_stddev.template data<float>(), a.beta.template data<float>()};
}

}  // namespace

void layer_norm(Context& context, const LayerNorm& a) {
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1);
  if (rows * hidden == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const unsigned threads = row_threads(hidden, "layer_norm");
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("layer_norm", cuda, static_cast<unsigned>(rows), threads, forward<T>, pointer<T>(a.x),
           hidden, parameters_of(a), pointer<T>(a.y));
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
    launch("layer_norm_backward", cuda, static_cast<unsigned>(blocks.count), threads, backward<T>,
           a.kind, pointer<T>(a.grad_y), source_of<T>(a, a.x), a.gamma.data<float>(), hidden,
           blocks, pointer<T>(a.grad_x), partials.data());
  });
  partials.add_to({a.grad_gamma.data<float>(), a.grad_beta.data<float>()});
}

namespace {

template <typename T>
struct ResidualForward {
  const T *residual, *x;
  float factor;
  Parameters norm;
  T *sum, *y;  // sum may be null
};

// One thread block per row, eight columns per thread.
template <typename T>
__global__ void residual_forward(ResidualForward<T> a, int64_t hidden, DropoutPlan plan) {
  const int64_t row = blockIdx.x, column = int64_t{threadIdx.x} * kEight, count = hidden - column;
  const int64_t at = row * hidden + column;
  Eight values, residual;
  load_eight_of_both(a.x + at, a.residual + at, count, values, residual);
  if (count > 0) drop_eight(values, plan, row_key_of(plan, row), threadIdx.x);
  for (int i = 0; i < kEight; ++i) {
    values.lane[i] = residual.lane[i] + values.lane[i] * a.factor;
  }
  if (a.sum != nullptr) store_eight(values, a.sum + at, count);
  const RowStatistics statistics =
      row_statistics(a.norm.kind, values, count, hidden, a.norm.epsilon);
  const Eight gamma = load_eight(a.norm.gamma + column, count);
  const Eight beta = load_beta(a.norm.beta, column, hidden);
  store_eight(normalised(values, statistics, gamma, beta), a.y + at, count);
  a.norm.store(row, statistics);
}

template <typename T>
struct ResidualBackward {
  NormKind kind;
  const T *grad_y, *grad_y_extra, *grad_sum_extra;  // the extras may be null
  NormSource<T> source;
  const float* gamma;
  float factor;
  T *grad_residual, *grad_x;  // either may be one of the inputs, and grad_x null
};

__device__ void add_to(Eight& sum, const Eight& other) {
  for (int i = 0; i < kEight; ++i) sum.lane[i] += other.lane[i];
}

// Reads a thread's part of each row, in the order of rows. kWhole: the thread's eight columns exist
// and are aligned. The next row is then loaded while this one is computed.
template <bool kWhole, typename T>
class RowReader {
 public:
  struct Row {
    Eight grad_y, norm;
    RowStatistics statistics;
    uint64_t row_key;
  };

  __device__ RowReader(const ResidualBackward<T>& a, const DropoutPlan& plan, int64_t hidden,
                       int64_t column, int64_t first, int64_t last)
      : a_(a), plan_(plan), hidden_(hidden), column_(column), row_(first), last_(last) {
    load();
  }
  __device__ Row next() {
    Row now;
    now.statistics = statistics_;
    now.row_key = row_key_;
    if constexpr (kWhole) {
      now.grad_y = widen(grad_y_);
      if (a_.grad_y_extra != nullptr) add_to(now.grad_y, widen(extra_));
      now.norm = widen(norm_);
    } else {
      const int64_t at = row_ * hidden_ + column_, count = hidden_ - column_;
      now.grad_y = load_eight(a_.grad_y + at, count);
      if (a_.grad_y_extra != nullptr) add_to(now.grad_y, load_eight(a_.grad_y_extra + at, count));
      now.norm = load_eight(a_.source.values() + at, count);
    }
    ++row_;
    load();
    return now;
  }

 private:
  __device__ void load() {
    if (row_ >= last_) return;
    statistics_ = a_.source.statistics(row_);
    row_key_ = row_key_of(plan_, row_);
    if constexpr (kWhole) {
      const int64_t at = row_ * hidden_ + column_;
      grad_y_ = load_stored(a_.grad_y + at);
      if (a_.grad_y_extra != nullptr) extra_ = load_stored(a_.grad_y_extra + at);
      norm_ = load_stored(a_.source.values() + at);
    }
  }

  const ResidualBackward<T>& a_;
  const DropoutPlan& plan_;
  int64_t hidden_, column_, row_, last_;
  RowStatistics statistics_{};
  uint64_t row_key_ = 0;
  Stored<T> grad_y_{}, extra_{}, norm_{};
};

// Stores a thread's columns of a row. kWhole: there are eight, and they are aligned.
template <bool kWhole, typename T>
__device__ void store(const Eight& from, T* to, int64_t count) {
  if constexpr (kWhole) {
    store_whole(from, to);
  } else {
    store_eight(from, to, count);
  }
}

// Bounds registers: to 128, with which the 512 threads of the longest row fit on a multiprocessor,
// and to 96 where a row is read without being loaded ahead.
template <bool kWhole>
constexpr int kBoundThreads = kWhole ? 512 : 672;

// kWarps: the number of warps of the block, or 0 if the launch decides.
template <bool kWhole, unsigned kWarps, typename T>
__global__ void __launch_bounds__(kBoundThreads<kWhole>)
    residual_backward(ResidualBackward<T> a, int64_t hidden, DeviceRowBlocks blocks,
                      DropoutPlan plan, float* partials) {
  const int64_t column = int64_t{threadIdx.x} * kEight, count = hidden - column;
  const Eight gamma = load_eight(a.gamma + column, count);
  const int64_t first = int64_t{blockIdx.x} * blocks.rows_per_block;
  const int64_t last = min(blocks.rows, first + blocks.rows_per_block);
  RowReader<kWhole, T> reader(a, plan, hidden, column, first, last);
  const MeanOf mean(hidden);
  Eight gamma_sum, beta_sum, bias_sum;
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * hidden + column;
    const auto [grad_y, norm, statistics, row_key] = reader.next();
    const int64_t end = kWhole ? column + kEight : hidden;  // all eight columns exist
    const Eight x_hat = a.source.x_hat(norm, statistics, end, column, gamma);
    Eight grad = norm_gradient<kWarps>(a.kind, grad_y, x_hat, gamma, row, mean,
                                       statistics.inverse_stddev, gamma_sum, beta_sum);
    if (a.grad_sum_extra != nullptr) {
      const T* extra = a.grad_sum_extra + at;
      add_to(grad, kWhole ? load_whole(extra) : load_eight(extra, count));
    }
    store<kWhole>(grad, a.grad_residual + at, count);
    if (kWhole || count > 0) drop_eight(grad, plan, row_key, threadIdx.x);
    for (int i = 0; i < kEight; ++i) grad.lane[i] *= a.factor;
    if (a.grad_x != nullptr) store<kWhole>(grad, a.grad_x + at, count);
    add_to(bias_sum, grad);
  }
  float* sums = partials + int64_t{blockIdx.x} * kResidualSums * hidden + column;
  store_eight(gamma_sum, sums + kGamma * hidden, count);
  store_eight(beta_sum, sums + kBeta * hidden, count);
  store_eight(bias_sum, sums + kBias * hidden, count);
}

// The kernel for these rows.
template <typename T>
auto backward_for(const ResidualBackward<T>& a, int64_t hidden) {
  // Every thread of a block has eight columns.
  const bool whole =
      hidden % (kEight * kWarp) == 0 && are_aligned({a.grad_y, a.grad_y_extra, a.grad_sum_extra,
                                                     a.source.values(), a.grad_residual, a.grad_x});
  if (!whole) return residual_backward<false, 0, T>;
  // In f32 a known number of warps needs more registers than there are, so that some are in memory.
  if constexpr (sizeof(T) == 2) {
    const int64_t warps = hidden / (kEight * kWarp);
    if (warps == 2) return residual_backward<true, 2, T>;
    if (warps == 3) return residual_backward<true, 3, T>;
    if (warps == 4) return residual_backward<true, 4, T>;
  }
  return residual_backward<true, 0, T>;
}

}  // namespace

void residual_norm(Context& context, const ResidualNorm& a) {
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1);
  if (rows * hidden == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DropoutPlan plan(a.dropout);
  const unsigned threads = row_threads(hidden, "residual_norm");
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const ResidualForward<T> call{.residual = pointer<T>(a.residual),
                                  .x = pointer<T>(a.x),
                                  .factor = a.factor,
                                  .norm = parameters_of(a),
                                  .sum = pointer<T>(a.sum),
                                  .y = pointer<T>(a.y)};
    launch("residual_norm", cuda, static_cast<unsigned>(rows), threads, residual_forward<T>, call,
           hidden, plan);
  });
}

void residual_norm_backward(Context& context, const ResidualNormBackward& a) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  if (rows * hidden == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DropoutPlan plan(a.dropout);
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks.count, hidden, kResidualSums);
  const unsigned threads = row_threads(hidden, "residual_norm_backward");
  with_device_type(a.grad_y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const ResidualBackward<T> call{.kind = a.kind,
                                   .grad_y = pointer<T>(a.grad_y),
                                   .grad_y_extra = pointer<T>(a.grad_y_extra),
                                   .grad_sum_extra = pointer<T>(a.grad_sum_extra),
                                   .source = source_of<T>(a, a.sum),
                                   .gamma = a.gamma.data<float>(),
                                   .factor = a.factor,
                                   .grad_residual = pointer<T>(a.grad_residual),
                                   .grad_x = pointer<T>(a.grad_x)};
    launch("residual_norm_backward", cuda, static_cast<unsigned>(blocks.count), threads,
           backward_for(call, hidden), call, hidden, blocks, plan, partials.data());
  });
  partials.add_to(
      {a.grad_gamma.data<float>(), a.grad_beta.data<float>(), a.grad_bias.data<float>()});
}

}  // namespace onebit::ops::cuda
