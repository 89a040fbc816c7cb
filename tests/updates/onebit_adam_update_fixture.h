// A buffer of 1-bit Adam's parameters in host memory, and the operations on CPU or CUDA device.
#pragma once

#include <span>
#include <vector>

#include "onebit/math/updates/onebit_adam_update.h"
#include "tests/ops/mirror.h"
#include "tests/updates/update_values.h"

namespace onebit::updates {

// Three blocks. The last one has two whole sub-blocks, one of 16 elements and five empty ones.
constexpr int64_t kElements = 2 * kernels::kBlockElements + 528;
constexpr int64_t kBlocks = 3;
constexpr int64_t kSubBlocks = kBlocks * kernels::kSubBlocks;
// The value of elements that an operation must not write.
constexpr float kUntouched = 7;
// Rounding errors of one number, and of a sum over a sub-block or block, for which a lane adds at
// most 64 terms before the sums of lanes and sub-blocks are added.
constexpr double kRounding = 0x1p-24, kSumRounding = 80 * kRounding;

inline size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

inline Values random_values(uint64_t stream, double scale) {
  return random_values(6, stream, kElements, scale);
}

inline Values random_variances(uint64_t stream) {
  Values values = random_values(stream, 0.3);
  for (float& one : values) one = one * one + 1e-3f;
  return values;
}

inline View part_of(Values& values, int64_t begin, int64_t end) {
  return View::of(values.data() + begin, {end - begin});
}

inline bool stands_still(size_t i) {
  return i % 7 == 3 || (i >= 100 && i < 140);
}

inline double decay_of(std::span<const UpdateRange> ranges, int64_t i) {
  for (const UpdateRange& range : ranges) {
    if (i < range.end) return range.weight_decay;
  }
  return 0;
}

inline double rate_of(std::span<const UpdateRange> ranges, int64_t i) {
  for (const UpdateRange& range : ranges) {
    if (i < range.end) return range.rate;
  }
  return 1;
}

inline double sum_of(const Values& values, int64_t first, int64_t last) {
  double sum = 0;
  for (int64_t i = first; i < last; ++i) sum += values[at(i)];
  return sum;
}

// Ends inside a sub-block, at the end of a block and just behind one.
inline const std::vector<UpdateRange> kDecays{
    {0, 272, 0.1, 2}, {272, 2048, 0}, {2048, 4112, 0.2, 0.25}, {4112, kElements, 0.05, 0}};

struct State {
  Values value = random_values(1, 2), gradient = random_values(2, 1);
  Values momentum = random_values(3, 0.1), variance = random_variances(4);
  Values normalized = Values(kElements, kUntouched), extra = Values(kBlocks, kUntouched);
  Values own_weight = Values(kSubBlocks, 1), ratio = {1, 1.5f, 4};
  Values energy = Values(kSubBlocks), sketch = Values(kBlocks), block_energy = Values(kBlocks);
  Values block_variance = Values(kBlocks, kUntouched);
  std::vector<double> square = std::vector<double>(kBlocks, kUntouched);
  std::vector<uint8_t> flags = std::vector<uint8_t>(kBlocks, 0xFF), still;

  State() : still(kElements / 8) {
    for (size_t i = 0; i < variance.size(); ++i) {
      if (!stands_still(i)) continue;
      gradient[i] = momentum[i] = variance[i] = 0;
      still[i / 8] = static_cast<uint8_t>(still[i / 8] | (1u << (i % 8)));
    }
  }
  void next_gradient(uint64_t stream) {
    gradient = random_values(stream, 1);
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] *= stands_still(i) ? 0.0f : 1.0f;
  }
  // One of several ranks. beta2 is chosen so that the shape of the variance changes visibly.
  OnebitNormalize normalize_arguments(int64_t begin = 0, int64_t end = kElements) {
    const int64_t first = begin / kernels::kBlockElements;
    const int64_t last = (end + kernels::kBlockElements - 1) / kernels::kBlockElements;
    return {.gradient = view_of(gradient),
            .value = view_of(value),
            .variance = view_of(variance),
            .normalized = part_of(normalized, begin, end),
            .extra = part_of(extra, first, last),
            .own_weight = view_of(own_weight),
            .block_ratio = view_of(ratio),
            .energy = view_of(energy),
            .sketch = view_of(sketch),
            .block_energy = view_of(block_energy),
            .block_variance = view_of(block_variance),
            .block_square = View::of(square.data(), {kBlocks}),
            .block_flags = View::of(flags.data(), {kBlocks}),
            .begin = begin,
            .end = end,
            .gradient_scale = 0.25,
            .beta2 = 0.9,
            .epsilon = 1e-3,
            .turn = 0,
            .energy_updates = {3, 5, 2, 7, 11, 4, 9, 6},
            .sketch_key = 11};
  }
  OnebitNormalize alone_arguments() {
    return {.gradient = view_of(gradient),
            .value = view_of(value),
            .variance = view_of(variance),
            .normalized = view_of(normalized),
            .block_square = View::of(square.data(), {kBlocks}),
            .block_flags = View::of(flags.data(), {kBlocks}),
            .begin = 0,
            .end = kElements,
            .gradient_scale = 0.25,
            .beta2 = 0.9,
            .epsilon = 1e-3,
            .alone = true};
  }
  OnebitMomentum momentum_arguments() {
    return {.momentum = view_of(momentum),
            .variance = view_of(variance),
            .normalized = view_of(normalized),
            .extra = view_of(extra),
            .begin = 0,
            .end = kElements};
  }
};

// The operations on views of host memory.
class OnebitUpdateTest : public ops::MirrorTest {
 protected:
  void freeze(OnebitFreeze a) {
    ops::Mirror mirror(context());
    a.momentum = mirror(a.momentum);
    a.variance = mirror(a.variance);
    a.still = mirror(a.still);
    onebit_freeze(context(), a);
    mirror.bring_back();
  }
  void normalize(OnebitNormalize a) {
    ops::Mirror mirror(context());
    a.gradient = mirror(a.gradient);
    a.value = mirror(a.value);
    a.own_weight = mirror(a.own_weight);
    a.block_ratio = mirror(a.block_ratio);
    for (View* view : {&a.variance, &a.normalized, &a.extra, &a.energy, &a.sketch, &a.block_energy,
                       &a.block_variance, &a.block_square, &a.block_flags}) {
      *view = mirror(*view);
    }
    onebit_normalize(context(), a);
    mirror.bring_back();
  }
  void momentum(OnebitMomentum a) {
    ops::Mirror mirror(context());
    a.momentum = mirror(a.momentum);
    a.variance = mirror(a.variance);
    a.normalized = mirror(a.normalized);
    a.extra = mirror(a.extra);
    onebit_momentum(context(), a);
    mirror.bring_back();
  }
  void step(OnebitStep a) {
    ops::Mirror mirror(context());
    a.value = mirror(a.value);
    a.compute_value = mirror(a.compute_value);
    a.momentum = mirror(a.momentum);
    a.still = mirror(a.still);
    onebit_step(context(), a);
    mirror.bring_back();
  }
};

}  // namespace onebit::updates
