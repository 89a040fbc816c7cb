// Measures sign compression relative to memory bandwidth, in one run. Figures are the necessary
// bytes moved per second. The last column of the report (of_triad) is their share of the rate of a
// triad on the same threads.
//
//   encode   reads x and the residual, writes the residual and the bits      12.1 bytes an element
//   average  reads the bits of `ranks`, reads and writes the residual         8 + ranks / 8
//   decode   reads the bits, writes x                                         4.1
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <vector>

#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/ground/base/clock.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::compress {
namespace {

// Much larger than any cache.
constexpr int64_t kElements = int64_t{24} << 20;
constexpr int64_t kWindow = int64_t{1} << 20;
constexpr int64_t kRanks = 4;

Tensor filled(DType dtype, Shape shape) {
  Tensor tensor = Tensor::zeros(Device{}, dtype, shape);
  if (dtype != DType::kF32) return tensor;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    tensor.data<float>()[i] = static_cast<float>((i * 7919) % 2001 - 1000) * 1e-3f;
  }
  return tensor;
}

// Measures windows and returns the time that a tenth of them beat. Windows are short, so that other
// work on the machine affects few of them. They return to the same memory only when no cache holds
// it.
class Windows {
 public:
  template <typename Work>
  double run(const Work& work) {
    const int64_t begin = next_;
    next_ = (next_ + kWindow) % kElements;
    const Stopwatch stopwatch;
    work(begin);
    seconds_.push_back(stopwatch.seconds());
    return seconds_.back();
  }
  double seconds() {
    const auto tenth = seconds_.begin() + static_cast<int64_t>(seconds_.size() / 10);
    std::ranges::nth_element(seconds_, tenth);
    return *tenth;
  }

 private:
  int64_t next_ = 0;
  std::vector<double> seconds_;
};

double triad_bytes_per_second(Context& context) {
  static std::map<int, double> known;
  double& speed = known[context.threads()];
  if (speed > 0) return speed;
  const Tensor a = filled(DType::kF32, {kElements}), b = filled(DType::kF32, {kElements}),
               c = filled(DType::kF32, {kElements});
  Windows windows;
  for (int pass = 0; pass < 20 * kElements / kWindow; ++pass) {
    windows.run([&](int64_t window) {
      context.parallel_for(kWindow, 1, [&](int64_t begin, int64_t end) {
        float* to = a.data<float>() + window;
        const float *left = b.data<float>() + window, *right = c.data<float>() + window;
        for (int64_t i = begin; i < end; ++i) to[i] = left[i] + 3.0f * right[i];
      });
    });
  }
  speed = 12.0 * kWindow / windows.seconds();
  return speed;
}

template <typename Work>
void measure(benchmark::State& state, Context& context, double bytes_an_element, const Work& work) {
  Windows windows;
  for (auto _ : state) state.SetIterationTime(windows.run(work));
  const double speed = bytes_an_element * kWindow / windows.seconds();
  state.counters["GB/s"] = speed * 1e-9;
  state.counters["triad_GB/s"] = triad_bytes_per_second(context) * 1e-9;
  state.counters["of_triad"] = speed / triad_bytes_per_second(context);
}

BlockRange window_blocks(int64_t begin) {
  return {begin / kBlockElements, (begin + kWindow) / kBlockElements};
}

void encode_signs(benchmark::State& state) {
  Context context = Context::cpu(static_cast<int>(state.range(0)));
  const Tensor values = filled(DType::kF32, {kElements}),
               residual = filled(DType::kF32, {kElements});
  const Tensor chunk = filled(DType::kU8, {chunk_bytes(kElements)});
  measure(state, context, 12.125, [&](int64_t window) {
    encode(context, {.values = values.view(),
                     .residual = residual.view(),
                     .chunk = chunk.view(),
                     .blocks = window_blocks(window)});
  });
}

void average_signs(benchmark::State& state) {
  Context context = Context::cpu(static_cast<int>(state.range(0)));
  const int64_t size_bytes = chunk_bytes(kElements);
  const Tensor chunks = filled(DType::kU8, {kRanks, size_bytes}),
               chunk = filled(DType::kU8, {size_bytes});
  const Tensor residual = filled(DType::kF32, {kElements});
  measure(state, context, 8 + (kRanks + 1) / 8.0, [&](int64_t window) {
    average(context, {.chunks = chunks.view(),
                      .residual = residual.view(),
                      .chunk = chunk.view(),
                      .blocks = window_blocks(window)});
  });
}

void decode_signs(benchmark::State& state) {
  Context context = Context::cpu(static_cast<int>(state.range(0)));
  const Tensor values = filled(DType::kF32, {kElements});
  const Tensor chunk = filled(DType::kU8, {chunk_bytes(kElements)});
  measure(state, context, 4.125, [&](int64_t window) {
    decode(context, {.chunk = chunk.view(),
                     .elements = kElements,
                     .values = values.view().rows(window, window + kWindow),
                     .blocks = window_blocks(window)});
  });
}

BENCHMARK(encode_signs)->ArgName("threads")->Arg(1)->Arg(2)->UseManualTime()->Iterations(300);
BENCHMARK(average_signs)->ArgName("threads")->Arg(1)->Arg(2)->UseManualTime()->Iterations(300);
BENCHMARK(decode_signs)->ArgName("threads")->Arg(1)->Arg(2)->UseManualTime()->Iterations(300);

}  // namespace
}  // namespace onebit::compress

BENCHMARK_MAIN();
