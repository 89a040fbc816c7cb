// The passes of the optimizers compared with memory bandwidth, in one run: the necessary memory
// traffic per second, and its share of a triad on the same threads (of_triad). Bytes per element:
//
//   adam        reads value, gradient, two moments, writes value and moments     28
//   adam_bf16   also writes the compute copy                                     30
//   lamb        reads value, gradient, two moments, writes moments, reads value
//               and moments again, writes value                                  40
//   lamb_bf16   also writes the compute copy                                     42
//   normalize   reads gradient, variance, writes variance, normalized gradient   16
//   momentum    reads momentum, normalized gradient, writes momentum             12
//   step        reads value, momentum, writes value                              12
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/math/updates/adam_update.h"
#include "onebit/math/updates/lamb_update.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::updates {
namespace {

// Much larger than any cache.
constexpr int64_t kElements = int64_t{16} << 20;
constexpr int64_t kBlocks = kElements / kernels::kBlockElements;
constexpr int kRuns = 15;

Tensor filled(float value) {
  Tensor tensor = Tensor::zeros(Device{}, DType::kF32, {kElements});
  std::fill_n(tensor.data<float>(), kElements, value);
  return tensor;
}

// The best of several runs, since the machine may have other load.
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

// Alternates tensors as large as a bert-base layer's with the small ones between them.
void lamb(benchmark::State& state, bool copies) {
  const Tensor value = filled(1), gradient = filled(0.1f), momentum = filled(0),
               variance = filled(0);
  const Tensor compute = Tensor::zeros(Device{}, DType::kBF16, {copies ? kElements : 0});
  std::vector<LambTensor> tensors;
  for (int64_t begin = 0, block = 0; begin < kElements; begin = tensors.back().end) {
    const int64_t size = tensors.size() % 2 == 0 ? 768 * 768 : 768;
    tensors.push_back({begin, std::min(begin + size, kElements), block, 0.01});
    block = tensors.back().end_block();
  }
  const Tensor ratio = Tensor::zeros({}, DType::kF32, {static_cast<int64_t>(tensors.size())});
  measure(state, copies ? 42 : 40, [&](Context& context) {
    lamb_update(context, {.value = value.view(),
                          .compute_value = copies ? compute.view() : View(),
                          .gradient = gradient.view(),
                          .momentum = momentum.view(),
                          .variance = variance.view(),
                          .ratio = ratio.view(),
                          .tensors = tensors,
                          .learning_rate = 1e-6});
  });
}

// Normalizes as one of several ranks does, or as a rank that is `alone`.
void normalize(benchmark::State& state, bool alone) {
  const auto zeros = [](DType type, int64_t count) { return Tensor::zeros({}, type, {count}); };
  const int64_t sub_blocks = kBlocks * kernels::kSubBlocks;
  const Tensor gradient = filled(0.1f), variance = filled(0.01f), normalized = filled(0);
  const Tensor extra = zeros(DType::kF32, kBlocks), ratio = zeros(DType::kF32, kBlocks);
  const Tensor own_weight = zeros(DType::kF32, sub_blocks), energy = zeros(DType::kF32, sub_blocks);
  std::fill_n(ratio.data<float>(), kBlocks, 2.0f);
  std::fill_n(own_weight.data<float>(), sub_blocks, 1.0f);
  const Tensor sketch = zeros(DType::kF32, kBlocks), block_energy = zeros(DType::kF32, kBlocks);
  const Tensor block_variance = zeros(DType::kF32, kBlocks);
  const Tensor square = zeros(DType::kF64, kBlocks), flags = zeros(DType::kU8, kBlocks);
  measure(state, 16, [&](Context& context) {
    onebit_normalize(context, {.gradient = gradient.view(),
                               .value = {},
                               .ranges = {},
                               .variance = variance.view(),
                               .normalized = normalized.view(),
                               .extra = extra.view(),
                               .own_weight = own_weight.view(),
                               .block_ratio = ratio.view(),
                               .energy = energy.view(),
                               .sketch = sketch.view(),
                               .block_energy = block_energy.view(),
                               .block_variance = block_variance.view(),
                               .block_square = square.view(),
                               .block_flags = flags.view(),
                               .begin = 0,
                               .end = kElements,
                               .sketch_key = 1,
                               .alone = alone});
  });
}

// Includes the variance update of one sub-block (`turn`).
void momentum(benchmark::State& state) {
  const Tensor x = filled(0), variance = filled(0.01f), normalized = filled(0.1f);
  const Tensor extra = Tensor::zeros(Device{}, DType::kF32, {kBlocks});
  std::fill_n(extra.data<float>(), kBlocks, 1.0f);
  measure(state, 12, [&](Context& context) {
    onebit_momentum(context, {.momentum = x.view(),
                              .variance = variance.view(),
                              .normalized = normalized.view(),
                              .extra = extra.view(),
                              .begin = 0,
                              .end = kElements,
                              .turn_memory = 0.99});
  });
}

void step(benchmark::State& state) {
  const Tensor value = filled(1), x = filled(0.1f);
  const Tensor still = Tensor::zeros(Device{}, DType::kU8, {kElements / 8});
  const std::vector<UpdateRange> ranges{{0, kElements, 0.01}};
  measure(state, 12, [&](Context& context) {
    onebit_step(context, {.value = value.view(),
                          .compute_value = View(),
                          .momentum = x.view(),
                          .still = still.view(),
                          .ranges = ranges,
                          .learning_rate = 1e-6});
  });
}

BENCHMARK_CAPTURE(adam, f32, false)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(adam, bf16, true)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(lamb, f32, false)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(lamb, bf16, true)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(normalize, ranks, false)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(normalize, alone, true)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK(momentum)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);
BENCHMARK(step)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace onebit::updates

BENCHMARK_MAIN();
