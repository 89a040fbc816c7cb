#include "onebit/kernels/update_ranges_cuda.h"
#include "onebit/ops/adam_update.h"
#include "onebit/ops/onebit_adam_update.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

// A thread block processes one block of the buffer: eight elements per thread.
constexpr int kThreads = kBlockElements / kEight;

// Flat buffers end at a multiple of 16, so a thread has all of its eight elements or none.
__global__ void freeze(float* momentum, float* variance, uint8_t* still, int64_t elements,
                       float factor, float epsilon) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= elements) return;
  Eight m = load_eight(momentum + at, kEight), v = load_eight(variance + at, kEight);
  unsigned bits = 0;
  for (int i = 0; i < kEight; ++i) {
    const bool moves = v.lane[i] > 0.0f;
    const float variance_now = fmaxf(factor * v.lane[i], kSmallestVariance);
    m.lane[i] = moves ? m.lane[i] / (sqrtf(variance_now) + epsilon) : 0.0f;
    v.lane[i] = moves ? variance_now : 0.0f;
    bits |= static_cast<unsigned>(!moves) << i;
  }
  store_eight(m, momentum + at, kEight);
  store_eight(v, variance + at, kEight);
  still[at / kEight] = static_cast<uint8_t>(bits);
}

struct Normalize {
  const float *gradient, *value;
  float *variance, *normalized, *extra;
  const float *own_weight, *block_ratio;
  float *energy, *sketch, *block_energy, *block_variance;
  double* block_square;
  uint8_t* block_flags;
  int64_t begin, end, shift;
  float scale, epsilon, beta2;
  double rest2, turn_factor;
  int turn;
  uint64_t key;
  bool alone;
};

static_assert(kSubBlocks == kThreads / kWarp, "a warp does a sub-block");

// The extra is kept finite: running means follow it and would never recover from an infinity.
__device__ float bounded(double value) {
  return static_cast<float>(fmax(-kLargestFinite, fmin(value, kLargestFinite)));
}

// Eight elements of one thread and their contributions to the sums of their sub-block.
struct EightGradients {
  Eight variance, gradient;
  float square = 0, sum = 0, signed_sum = 0;
  bool still_moved = false, readable = true;
};

// Loads a thread's elements; `gradient` is then scaled, decayed, and 0 in still entries.
__device__ EightGradients read_gradients(const Normalize& a, float decay, int64_t at) {
  const float largest = static_cast<float>(sqrt(kLargestFinite));
  EightGradients mine;
  mine.variance = load_eight(a.variance + at, kEight);
  mine.gradient = load_eight(a.gradient + at, kEight);
  Eight value;
  if (decay != 0.0f) value = load_eight(a.value + at, kEight);
  const uint32_t signs =
      a.alone ? 0 : noise_signs(a.key, static_cast<uint64_t>((at + a.shift) / 32)) >> (at % 32);
  for (int i = 0; i < kEight; ++i) {
    const bool moves = mine.variance.lane[i] > 0.0f;
    mine.still_moved = mine.still_moved || (!moves && mine.gradient.lane[i] != 0.0f);
    float g = a.scale * mine.gradient.lane[i];
    if (decay != 0.0f) g = fmaf(decay, value.lane[i], g);
    mine.readable = mine.readable && fabsf(g) <= largest;
    if (!moves) g = 0;
    mine.gradient.lane[i] = g;
    mine.square = fmaf(g, g, mine.square);
    mine.sum += mine.variance.lane[i];
    mine.signed_sum += (signs >> i & 1u) != 0 ? -g : g;
  }
  return mine;
}

// Stores a thread's normalized gradient and its variance with `own` of the squares, times `shrink`.
// For a block that is not finite: stores zeros and keeps the variance.
__device__ void write_normalized(const Normalize& a, EightGradients& mine, float own, float shrink,
                                 bool finite, int64_t at) {
  const float kept = a.alone ? a.beta2 : 1.0f;
  Eight result;
  for (int i = 0; i < kEight && finite; ++i) {
    const bool moves = mine.variance.lane[i] > 0.0f;
    const float g = mine.gradient.lane[i], v = fmaf(own, g * g, kept * mine.variance.lane[i]);
    result.lane[i] = moves ? g / (sqrtf(fmaxf(v, kSmallestVariance)) + a.epsilon) : 0.0f;
    mine.variance.lane[i] = moves ? fmaxf(v * shrink, kSmallestVariance) : 0.0f;
  }
  store_eight(result, a.normalized + (at - a.begin), kEight);
  if (finite) store_eight(mine.variance, a.variance + at, kEight);
}

// Updates the energy of a sub-block, by one thread of its warp: `square` and `sum` are the warp's.
__device__ void add_energy(const Normalize& a, int64_t block, int sub_block, float square,
                           float sum, bool finite) {
  float& energy = a.energy[block * kSubBlocks + sub_block];
  if (finite && sum > 0) {
    energy += bounded(double{square} / (double{a.block_ratio[block]} * double{sum}));
  }
  if (sub_block == a.turn) {
    a.extra[block - a.begin / kBlockElements] = bounded(a.turn_factor * double{energy});
    energy = 0;
  }
}

// Updates the sketch of a block, by one of its threads: the sums are those of all sub-blocks.
__device__ void add_sketch(const Normalize& a, int64_t block, float square, float sum,
                           float signed_sum, bool finite) {
  a.block_variance[block] = sum;
  if (finite && sum > 0) {
    a.sketch[block] += bounded(double{signed_sum} / sqrt(double{sum}));
    a.block_energy[block] += bounded(double{square} / double{sum});
  }
  if (a.turn == kSubBlocks) {
    a.extra[block - a.begin / kBlockElements] = bounded(double{a.sketch[block]});
    a.sketch[block] = 0;
  }
}

// The share of the rank's own squares in the variance of a sub-block.
__device__ double own_share(const Normalize& a, int64_t block, int sub_block) {
  if (a.alone) return a.rest2;
  return a.rest2 *
         (double{a.own_weight[block * kSubBlocks + sub_block]} / double{a.block_ratio[block]});
}

// A warp processes one sub-block, so the sums of a warp are those of the sub-block.
__global__ void normalize(Normalize a, const UpdateRange* ranges, int range_count) {
  const int64_t first = a.begin + int64_t{blockIdx.x} * kBlockElements;
  const int64_t at = first + int64_t{threadIdx.x} * kEight;
  const int64_t block = first / kBlockElements;
  const int sub_block = static_cast<int>(threadIdx.x) / kWarp;
  const bool here = at < a.end;
  EightGradients mine;
  if (here) mine = read_gradients(a, decay_at(ranges, range_count, at), at);
  const float square = warp_sum(mine.square), sum = warp_sum(mine.sum);
  const float signed_sum = warp_sum(mine.signed_sum);
  const double own = own_share(a, block, sub_block), added = own * double{square};
  const bool bearable =
      double{square} <= kLargestFinite && (a.alone || added <= kLargestFinite * double{sum});
  const bool moved = __syncthreads_or(mine.still_moved) != 0;
  const bool finite = __syncthreads_and(bearable && mine.readable) != 0;
  if (here) {
    const double grown = double{sum} + added;
    const float shrink = a.alone || grown == 0 ? 1.0f : static_cast<float>(double{sum} / grown);
    write_normalized(a, mine, static_cast<float>(own), shrink, finite, at);
  }
  const bool leads = threadIdx.x % kWarp == 0;
  if (leads && !a.alone) add_energy(a, block, sub_block, square, sum, finite);
  const float first_lane = leads ? 1.0f : 0.0f;
  const Sums squares = block_sums({first_lane * square, first_lane * sum});
  const float signed_total = block_sum(first_lane * signed_sum);
  if (threadIdx.x != 0) return;
  a.block_square[block] = finite ? double{squares.first} : 0;
  a.block_flags[block] = !finite ? kBlockNotFinite : moved ? kBlockStillMoved : 0;
  if (!a.alone) add_sketch(a, block, squares.first, squares.second, signed_total, finite);
}

struct Momentum {
  float *momentum, *variance;
  const float *normalized, *extra;  // may be null
  int64_t begin, end;
  float beta, rest;
  double turn_memory;
  int turn;
};

__global__ void momentum(Momentum a) {
  const int64_t first = a.begin + int64_t{blockIdx.x} * kBlockElements;
  const int64_t at = first + int64_t{threadIdx.x} * kEight;
  if (at >= a.end) return;
  if (a.normalized != nullptr) {
    Eight m = load_eight(a.momentum + at, kEight);
    const Eight y = load_eight(a.normalized + (at - a.begin), kEight);
    for (int i = 0; i < kEight; ++i) {
      const float next = fmaf(a.beta, m.lane[i], a.rest * y.lane[i]);
      m.lane[i] = fabsf(next) >= kSmallestMomentum ? next : 0.0f;
    }
    store_eight(m, a.momentum + at, kEight);
  }
  if (a.extra == nullptr || static_cast<int>(threadIdx.x) / kWarp != a.turn) return;
  const double energy = a.extra[(first - a.begin) / kBlockElements];
  const float growth = static_cast<float>(a.turn_memory + (1 - a.turn_memory) * energy);
  const float largest = static_cast<float>(kLargestFinite);
  Eight v = load_eight(a.variance + at, kEight);
  for (int i = 0; i < kEight; ++i) {
    const float next = fminf(fmaxf(v.lane[i] * growth, kSmallestVariance), largest);
    v.lane[i] = v.lane[i] > 0.0f ? next : 0.0f;
  }
  store_eight(v, a.variance + at, kEight);
}

struct Step {
  float* value;
  const float* momentum;
  const uint8_t* still;
  int64_t elements;
  float rate, factor;
};

__global__ void step(Step a, ComputeCopy copy, const UpdateRange* ranges, int range_count) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= a.elements) return;
  const float decay = decay_at(ranges, range_count, at);
  const unsigned still = a.still[at / kEight];
  Eight value = load_eight(a.value + at, kEight);
  const Eight m = load_eight(a.momentum + at, kEight);
  for (int i = 0; i < kEight; ++i) {
    const float moved =
        fmaf(-a.rate, fmaf(decay, value.lane[i], a.factor * m.lane[i]), value.lane[i]);
    value.lane[i] = (still >> i & 1u) != 0 ? value.lane[i] : moved;
  }
  store_eight(value, a.value + at, kEight);
  copy.store(value, at, kEight);
}

unsigned update_blocks(int64_t elements) {
  return blocks_of(elements, kBlockElements);
}

}  // namespace

void onebit_freeze(Context& context, const OnebitFreeze& a) {
  const int64_t elements = a.momentum.elements();
  if (elements == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  launch("onebit_freeze", cuda, update_blocks(elements), kThreads, freeze, a.momentum.data<float>(),
         a.variance.data<float>(), a.still.data<uint8_t>(), elements,
         static_cast<float>(a.variance_factor), static_cast<float>(a.epsilon));
}

void onebit_normalize(Context& context, const OnebitNormalize& a) {
  if (a.begin == a.end) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceRanges ranges(cuda, a.ranges);
  const auto sent = [&](const View& view) { return a.alone ? nullptr : view.data<float>(); };
  const Normalize call{.gradient = a.gradient.data<float>(),
                       .value = a.ranges.empty() ? nullptr : a.value.data<float>(),
                       .variance = a.variance.data<float>(),
                       .normalized = a.normalized.data<float>(),
                       .extra = sent(a.extra),
                       .own_weight = a.alone ? nullptr : a.own_weight.data<float>(),
                       .block_ratio = a.alone ? nullptr : a.block_ratio.data<float>(),
                       .energy = sent(a.energy),
                       .sketch = sent(a.sketch),
                       .block_energy = sent(a.block_energy),
                       .block_variance = sent(a.block_variance),
                       .block_square = a.block_square.data<double>(),
                       .block_flags = a.block_flags.data<uint8_t>(),
                       .begin = a.begin,
                       .end = a.end,
                       .shift = a.sketch_shift,
                       .scale = static_cast<float>(a.gradient_scale),
                       .epsilon = static_cast<float>(a.epsilon),
                       .beta2 = static_cast<float>(a.beta2),
                       .rest2 = 1 - a.beta2,
                       .turn_factor = a.turn_factor,
                       .turn = static_cast<int>(a.turn),
                       .key = a.sketch_key,
                       .alone = a.alone};
  launch("onebit_normalize", cuda, update_blocks(a.end - a.begin), kThreads, normalize, call,
         ranges.data(), ranges.count());
}

void onebit_momentum(Context& context, const OnebitMomentum& a) {
  if (a.begin == a.end) return;
  CudaStream& cuda = CudaStream::of(context);
  const Momentum call{.momentum = a.momentum.data<float>(),
                      .variance = a.variance.data<float>(),
                      .normalized = a.normalized.empty() ? nullptr : a.normalized.data<float>(),
                      .extra = a.extra.empty() ? nullptr : a.extra.data<float>(),
                      .begin = a.begin,
                      .end = a.end,
                      .beta = static_cast<float>(a.beta1),
                      .rest = static_cast<float>(1 - a.beta1),
                      .turn_memory = a.turn_memory,
                      .turn = static_cast<int>(a.turn)};
  launch("onebit_momentum", cuda, update_blocks(a.end - a.begin), kThreads, momentum, call);
}

void onebit_step(Context& context, const OnebitStep& a) {
  const int64_t elements = a.value.elements();
  if (elements == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceRanges ranges(cuda, a.ranges);
  const Step call{.value = a.value.data<float>(),
                  .momentum = a.momentum.data<float>(),
                  .still = a.still.data<uint8_t>(),
                  .elements = elements,
                  .rate = static_cast<float>(a.learning_rate),
                  .factor = static_cast<float>(a.momentum_factor)};
  launch("onebit_step", cuda, update_blocks(elements), kThreads, step, call,
         ComputeCopy(a.compute_value), ranges.data(), ranges.count());
}

}  // namespace onebit::ops::cuda
