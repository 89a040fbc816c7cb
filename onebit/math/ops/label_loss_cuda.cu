#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/label_loss.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

template <typename T>
struct Call {
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
__global__ void rows(Call<T> a) {
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
    const Call<T> call{.logits = pointer<T>(a.logits),
                       .columns = a.logits.extent(1),
                       .targets = a.targets.data<float>(),
                       .positive_weights = a.positive_weights.data<float>(),
                       .is_sigmoid = a.kind == LabelLossKind::kSigmoid,
                       .write_gradient = a.write_gradient,
                       .gradient_scale = a.gradient_scale,
                       .losses = a.losses.data<float>()};
    launch("label_loss", cuda, static_cast<unsigned>(count), kWarp, rows<T>, call);
  });
}

}  // namespace onebit::ops::cuda
