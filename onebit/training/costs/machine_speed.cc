#include "onebit/training/costs/machine_speed.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::costs {
namespace {

// Seconds of the fastest run. The first one is not counted: it compiles kernels and touches memory.
double fastest(Context& context, double seconds, const std::function<void()>& run) {
  run();
  context.synchronize();
  const Stopwatch spent;
  double best = 1e30;
  while (best > 1e29 || spent.seconds() < seconds) {
    const Stopwatch watch;
    run();
    context.synchronize();
    best = std::min(best, watch.seconds());
  }
  return best;
}

}  // namespace

double measure_product(Context& context, DType type, double seconds) {
  constexpr int64_t kRows = 1024, kIn = 768, kOut = 3072;
  const Tensor x = Tensor::zeros(context.device(), type, {kRows, kIn});
  const Tensor weight = Tensor::zeros(context.device(), type, {kOut, kIn});
  const Tensor y = Tensor::zeros(context.device(), type, {kRows, kOut});
  const double best = fastest(context, seconds, [&] {
    ops::linear(context, {.x = x.view(), .weight = weight.view(), .bias = {}, .y = y.view()});
  });
  return 2.0 * kRows * kIn * kOut / best;
}

double measure_memory(Context& context, double seconds) {
  ONEBIT_INVARIANT(context.device().is_cpu());
  constexpr int64_t kElements = int64_t{1} << 24;  // 128 MiB each
  std::vector<double> from(kElements, 1.0), to(kElements, 0.0);
  const double best = fastest(context, seconds, [&] {
    context.parallel_for(kElements, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin,
                  static_cast<size_t>(end - begin) * sizeof(double));
    });
  });
  return 2.0 * kElements * sizeof(double) / best;
}

}  // namespace onebit::costs
