#include <cmath>

#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/cross_entropy.h"
#include "onebit/math/ops/span_cross_entropy.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

template <typename T>
struct Call {
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
__global__ void segments(Call<T> a) {
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
    const Call<T> call{.logits = pointer<T>(a.logits),
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
