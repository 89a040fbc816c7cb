// The passes of the optimizers against memory bandwidth, in one run: bytes that must move per
// second, and its share of a triad on the same threads (of_triad). Bytes an element:
//
//   adam        reads value, gradient, two moments; writes value and moments     28
//   adam_bf16   and the compute copy                                             30
//   momentum    reads x, 1 / d, gradient; writes x                               16
//   step        reads value, x; writes value                                     12
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "onebit/base/clock.h"
#include "onebit/ops/adam_update.h"
#include "onebit/ops/onebit_update.h"
#include "onebit/tensor/tensor.h"

namespace onebit::ops {
namespace {

// Far beyond any cache.
constexpr int64_t kElements = int64_t{16} << 20;
constexpr int64_t kBlocks = kElements / kUpdateBlockElements;
constexpr int kRuns = 15;

Tensor filled(float value) {
  Tensor tensor = Tensor::zeros(Device{}, DType::kF32, {kElements});
  std::fill_n(tensor.data<float>(), kElements, value);
  return tensor;
}

// The best of several runs: others may be using the machine.
template <typename Work>
double best_seconds(const Work& work) {
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const Stopwatch watch;
    work();
    best = std::min(best, watch.seconds());
  }
  return best;
}

double triad_bytes_per_second(Context& context) {
  const Tensor a = filled(1), b = filled(2), c = filled(3);
  const double seconds = best_seconds([&] {
    context.parallel_for(kElements, 1 << 16, [&](int64_t begin, int64_t end) {
      float* to = a.data<float>();
      const float *left = b.data<float>(), *right = c.data<float>();
      for (int64_t i = begin; i < end; ++i) to[i] = left[i] + 3.0f * right[i];
    });
  });
  return 12.0 * kElements / seconds;
}

template <typename Work>
void measure(benchmark::State& state, double bytes_an_element, const Work& work) {
  Context context = Context::cpu(static_cast<int>(state.range(0)));
  const double triad = triad_bytes_per_second(context);
  for (auto _ : state) {
    const double seconds = best_seconds([&] { work(context); });
    state.SetIterationTime(seconds);
    const double speed = bytes_an_element * kElements / seconds;
    state.counters["GB/s"] = speed * 1e-9;
    state.counters["of_triad"] = speed / triad;
  }
}

void adam(benchmark::State& state, bool copies) {
  const Tensor value = filled(1), gradient = filled(0.1f), momentum = filled(0),
               variance = filled(0);
  const Tensor compute = Tensor::zeros(Device{}, DType::kBF16, {copies ? kElements : 0});
  const std::vector<UpdateRange> ranges{{0, kElements, 0.01}};
  measure(state, copies ? 30 : 28, [&](Context& context) {
    adam_update(context, {.value = value.view(),
                          .compute_value = copies ? compute.view() : View(),
                          .gradient = gradient.view(),
                          .momentum = momentum.view(),
                          .variance = variance.view(),
                          .ranges = ranges,
                          .learning_rate = 1e-6});
  });
}

void momentum(benchmark::State& state) {
  const Tensor x = filled(0), inverse = filled(1), gradient = filled(0.1f);
  const Tensor energy = Tensor::zeros(Device{}, DType::kF32, {kBlocks});
  const Tensor square = Tensor::zeros(Device{}, DType::kF64, {kBlocks});
  const Tensor flags = Tensor::zeros(Device{}, DType::kU8, {kBlocks});
  measure(state, 16, [&](Context& context) {
    onebit_momentum(context, {.momentum = x.view(),
                              .inverse = inverse.view(),
                              .gradient = gradient.view(),
                              .value = View(),
                              .block_energy = energy.view(),
                              .block_square = square.view(),
                              .block_flags = flags.view(),
                              .begin = 0,
                              .end = kElements});
  });
}

void step(benchmark::State& state) {
  const Tensor value = filled(1), x = filled(0.1f);
  const Tensor still = Tensor::zeros(Device{}, DType::kU8, {kElements / 8});
  const Tensor factor = Tensor::zeros(Device{}, DType::kF32, {kBlocks});
  const std::vector<UpdateRange> ranges{{0, kElements, 0.01}};
  measure(state, 12, [&](Context& context) {
    onebit_step(context, {.value = value.view(),
                          .compute_value = View(),
                          .momentum = x.view(),
                          .inverse = View(),
                          .still = still.view(),
                          .block_factor = factor.view(),
                          .ranges = ranges,
                          .learning_rate = 1e-6});
  });
}

BENCHMARK_CAPTURE(adam, f32, false)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(adam, bf16, true)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK(momentum)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK(step)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace onebit::ops

BENCHMARK_MAIN();
