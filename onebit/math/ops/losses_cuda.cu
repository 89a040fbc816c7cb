#include <cmath>

#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/losses.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;

// The largest value and the first column that holds it.
struct Largest {
  float value;
  int column;
};

__device__ Largest larger(Largest a, Largest b) {
  const bool second = b.value > a.value || (b.value == a.value && b.column < a.column);
  return second ? b : a;
}

struct LargestOfWarps {
  Largest of[kWarp];
};

__device__ Largest block_largest(Largest mine) {
  auto& partial = block_shared<LargestOfWarps>().of;
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    mine = larger(mine, {__shfl_xor_sync(kAllLanes, mine.value, distance),
                         __shfl_xor_sync(kAllLanes, mine.column, distance)});
  }
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = mine;
  __syncthreads();
  Largest result = partial[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) result = larger(result, partial[warp]);
  return result;
}

template <typename T>
struct Call {
  T* logits;
  int64_t stride;
  int classes;
  const int32_t* targets;
  bool write_gradient;
  float gradient_scale;
  float* losses;
  uint8_t* correct;            // may be null
  const float* class_weights;  // may be null
};

// The gradient of one row: zero if `scale` is 0, and zero in the padding.
template <typename T>
__device__ void write_gradient(T* logits, const Call<T>& a, int target, float maximum,
                               float log_sum, float scale) {
  for (int64_t at = int64_t{threadIdx.x} * kEight; at < a.stride; at += kThreads * kEight) {
    Eight values = load_eight(logits + at, a.stride - at);
    for (int i = 0; i < kEight; ++i) {
      const float probability = expf((values.lane[i] - maximum) - log_sum);
      const float gradient = (probability - (at + i == target ? 1.0f : 0.0f)) * scale;
      values.lane[i] = at + i < a.classes && target >= 0 ? gradient : 0.0f;
    }
    store_eight(values, logits + at, a.stride - at);
  }
}

struct TargetLogit {
  float value;
};

// One thread block per row. A target outside the classes yields a NaN loss.
template <typename T>
__global__ void rows(Call<T> a) {
  float& of_target = block_shared<TargetLogit>().value;
  const int64_t row = blockIdx.x;
  T* logits = a.logits + row * a.stride;
  const int target = a.targets[row];
  if (target < 0 || target >= a.classes) {
    if (threadIdx.x == 0) {
      a.losses[row] = target == kIgnoredTarget ? 0.0f : nanf("");
      if (a.correct != nullptr) a.correct[row] = 0;
    }
    if (a.write_gradient) write_gradient(logits, a, -1, 0.0f, 0.0f, 0.0f);
    return;
  }
  Largest best{-INFINITY, a.classes};
  for (int at = static_cast<int>(threadIdx.x) * kEight; at < a.classes; at += kThreads * kEight) {
    const Eight values = load_eight(logits + at, a.classes - at);
    for (int i = 0; i < kEight && at + i < a.classes; ++i) {
      best = larger(best, {values.lane[i], at + i});
    }
  }
  best = block_largest(best);
  float sum = 0;
  for (int at = static_cast<int>(threadIdx.x) * kEight; at < a.classes; at += kThreads * kEight) {
    const Eight values = load_eight(logits + at, a.classes - at);
    for (int i = 0; i < kEight && at + i < a.classes; ++i) {
      sum += expf(values.lane[i] - best.value);
    }
  }
  const float log_sum = logf(block_sum(sum));
  const float weight = a.class_weights == nullptr ? 1.0f : a.class_weights[target];
  if (threadIdx.x == 0) {
    of_target = widen(logits[target]);
    a.losses[row] = weight * (log_sum + (best.value - of_target));
    if (a.correct != nullptr) a.correct[row] = best.column == target;
  }
  __syncthreads();  // the target's logit has been read
  if (a.write_gradient) {
    write_gradient(logits, a, target, best.value, log_sum, weight * a.gradient_scale);
  }
}

}  // namespace

void cross_entropy(Context& context, const CrossEntropy& a) {
  const int64_t count = a.logits.extent(0);
  if (count == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.logits.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const Call<T> call{.logits = pointer<T>(a.logits),
                       .stride = a.logits.extent(1),
                       .classes = static_cast<int>(a.classes),
                       .targets = a.targets.data<int32_t>(),
                       .write_gradient = a.write_gradient,
                       .gradient_scale = a.gradient_scale,
                       .losses = a.losses.data<float>(),
                       .correct = a.correct.data<uint8_t>(),
                       .class_weights = a.class_weights.data<float>()};
    launch("cross_entropy", cuda, static_cast<unsigned>(count), kThreads, rows<T>, call);
  });
}

namespace {

template <typename T>
struct LabelCall {
  T* logits;
  int64_t columns;
  const float* targets;
  const float* positive_weights;  // may be null
  bool is_sigmoid, write_gradient;
  float gradient_scale;
  float* losses;
};

struct Term {
  double loss, gradient;
};

__device__ double softplus(double x) {
  return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

__device__ double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

// fmax() drops a NaN. The other part of the sum preserves it.
__device__ Term term_of(bool is_sigmoid, double x, double target, double weight) {
  if (!is_sigmoid) return {(x - target) * (x - target), 2 * (x - target)};
  return {weight * target * softplus(-x) + (1 - target) * softplus(x),
          (1 - target) * sigmoid(x) - weight * target * sigmoid(-x)};
}

// One warp per row: a row has only a few columns, so f64 costs nothing.
template <typename T>
__global__ void label_losses(LabelCall<T> a) {
  const int64_t first = blockIdx.x * a.columns;
  const double scale = double{a.gradient_scale} / static_cast<double>(a.columns);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < a.columns; i += kWarp) {
    const double weight = a.positive_weights == nullptr ? 1 : double{a.positive_weights[i]};
    const Term term = term_of(a.is_sigmoid, double{widen(a.logits[first + i])},
                              double{a.targets[first + i]}, weight);
    sum += term.loss;
    if (a.write_gradient)
      a.logits[first + i] = narrow<T>(static_cast<float>(scale * term.gradient));
  }
  sum = warp_sum(sum);
  if (threadIdx.x == 0) {
    a.losses[blockIdx.x] = static_cast<float>(sum / static_cast<double>(a.columns));
  }
}

}  // namespace

void label_loss(Context& context, const LabelLoss& a) {
  const int64_t count = a.logits.extent(0);
  if (count == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.logits.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const LabelCall<T> call{.logits = pointer<T>(a.logits),
                            .columns = a.logits.extent(1),
                            .targets = a.targets.data<float>(),
                            .positive_weights = a.positive_weights.data<float>(),
                            .is_sigmoid = a.kind == LabelLossKind::kSigmoid,
                            .write_gradient = a.write_gradient,
                            .gradient_scale = a.gradient_scale,
                            .losses = a.losses.data<float>()};
    launch("label_loss", cuda, static_cast<unsigned>(count), kWarp, label_losses<T>, call);
  });
}

namespace {

template <typename T>
struct SpanCall {
  T* logits;  // [rows, columns]
  const int32_t* starts;
  const int32_t* targets;  // [columns, batch]
  int64_t columns, batch;
  bool write_gradient;
  float gradient_scale;
  float* losses;  // [columns, batch]
};

// One warp per column of each sequence. A target outside its sequence yields a NaN loss.
template <typename T>
__global__ void segments(SpanCall<T> a) {
  const int64_t sequence = blockIdx.x, column = blockIdx.y;
  const int64_t place = column * a.batch + sequence;
  const int first = a.starts[sequence], length = a.starts[sequence + 1] - first;
  const int target = a.targets[place], lane = static_cast<int>(threadIdx.x);
  T* logits = a.logits + first * a.columns + column;
  if (target < 0 || target >= length) {
    if (lane == 0) a.losses[place] = target == kIgnoredTarget ? 0.0f : nanf("");
    for (int i = lane; a.write_gradient && i < length; i += kWarp) {
      logits[i * a.columns] = narrow<T>(0.0f);
    }
    return;
  }
  float maximum = -INFINITY, sum = 0;
  for (int i = lane; i < length; i += kWarp) maximum = fmaxf(maximum, widen(logits[i * a.columns]));
  maximum = warp_max(maximum);
  for (int i = lane; i < length; i += kWarp) sum += expf(widen(logits[i * a.columns]) - maximum);
  const float log_sum = logf(warp_sum(sum));
  if (lane == 0) a.losses[place] = log_sum + (maximum - widen(logits[target * a.columns]));
  __syncwarp();  // the target's logit has been read
  for (int i = lane; a.write_gradient && i < length; i += kWarp) {
    const float probability = expf((widen(logits[i * a.columns]) - maximum) - log_sum);
    const float gradient = probability - (i == target ? 1.0f : 0.0f);
    logits[i * a.columns] = narrow<T>(gradient * a.gradient_scale);
  }
}

}  // namespace

void span_cross_entropy(Context& context, const SpanCrossEntropy& a) {
  const int64_t columns = a.logits.extent(1), batch = a.targets.extent(1);
  if (columns * batch == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const dim3 grid(static_cast<unsigned>(batch), static_cast<unsigned>(columns));
  with_device_type(a.logits.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const SpanCall<T> call{.logits = pointer<T>(a.logits),
                           .starts = a.sequence_starts.device.template data<int32_t>(),
                           .targets = a.targets.data<int32_t>(),
                           .columns = columns,
                           .batch = batch,
                           .write_gradient = a.write_gradient,
                           .gradient_scale = a.gradient_scale,
                           .losses = a.losses.data<float>()};
    launch("span_cross_entropy", cuda, grid, kWarp, segments<T>, call);
  });
}

}  // namespace onebit::ops::cuda
