#include "bench/flat_passes.h"

#include <vector>

#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/math/updates/adam_update.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit {

void bench_flat_passes(DeviceBench& bench) {
  constexpr int64_t kElements = 336'000'000 / 2048 * 2048, kBlocks = kElements / 2048;
  const auto flat = [&] { return bench.make(DType::kF32, {kElements}); };
  const Tensor value = flat(), gradient = flat(), momentum = flat();
  const Tensor variance = bench.positive(DType::kF32, {kElements});
  const Tensor copied = bench.make(DType::kBF16, {kElements});
  const Tensor still = Tensor::zeros(bench.context().device(), DType::kU8, {kElements / 8});
  const auto of_blocks = [&] { return bench.positive(DType::kF32, {kBlocks}); };
  const auto of_sub_blocks = [&] {
    return bench.positive(DType::kF32, {kBlocks * kernels::kSubBlocks});
  };
  const Tensor own_weight = of_sub_blocks(), energy = of_sub_blocks();
  const Tensor extra = of_blocks(), ratio = of_blocks(), sketch = of_blocks();
  const Tensor block_energy = of_blocks(), block_variance = of_blocks();
  const Tensor squares = bench.make(DType::kF64, {kBlocks, 2});
  const Tensor flags = bench.make(DType::kU8, {kBlocks});
  const Tensor chunk = bench.make(DType::kU8, {compress::chunk_bytes(kElements)});
  const std::vector<updates::UpdateRange> ranges{{0, kElements, 0.01}};
  Context& context = bench.context();
  bench.bytes("adam update", 30 * kElements, [&] {
    updates::adam_update(context, {.value = value.view(),
                                   .compute_value = copied.view(),
                                   .gradient = gradient.view(),
                                   .momentum = momentum.view(),
                                   .variance = variance.view(),
                                   .ranges = ranges,
                                   .learning_rate = 1e-4});
  });
  // `value` takes the normalized gradient, which the two passes that follow read.
  bench.bytes("1-bit normalize", 16 * kElements, [&] {
    updates::onebit_normalize(
        context, {.gradient = gradient.view(),
                  .value = {},
                  .ranges = {},
                  .variance = variance.view(),
                  .normalized = value.view(),
                  .extra = extra.view(),
                  .own_weight = own_weight.view(),
                  .block_ratio = ratio.view(),
                  .energy = energy.view(),
                  .sketch = sketch.view(),
                  .block_energy = block_energy.view(),
                  .block_variance = block_variance.view(),
                  .block_square = squares.view().reshaped({2 * kBlocks}).rows(0, kBlocks),
                  .block_flags = flags.view(),
                  .begin = 0,
                  .end = kElements,
                  .sketch_key = 1});
  });
  bench.bytes("1-bit momentum", 12 * kElements, [&] {
    updates::onebit_momentum(context, {.momentum = momentum.view(),
                                       .variance = variance.view(),
                                       .normalized = value.view(),
                                       .extra = extra.view(),
                                       .begin = 0,
                                       .end = kElements});
  });
  bench.bytes("1-bit step", 14 * kElements + kElements / 8, [&] {
    updates::onebit_step(context, {.value = value.view(),
                                   .compute_value = copied.view(),
                                   .momentum = momentum.view(),
                                   .still = still.view(),
                                   .ranges = ranges,
                                   .learning_rate = 1e-4});
  });
  bench.bytes("encode", 12 * kElements + kElements / 8, [&] {
    compress::encode(context, {.values = momentum.view(),
                               .residual = variance.view(),
                               .still = still.view(),
                               .extras = {},
                               .chunk = chunk.view(),
                               .block_squares = squares.view(),
                               .blocks = {0, kBlocks}});
  });
  bench.bytes("decode", 4 * kElements + kElements / 4, [&] {
    compress::decode(context, {.chunk = chunk.view(),
                               .elements = kElements,
                               .still = still.view(),
                               .values = momentum.view(),
                               .extras = {},
                               .blocks = {0, kBlocks}});
  });
}

}  // namespace onebit
