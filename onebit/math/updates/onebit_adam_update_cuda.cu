#include "onebit/math/kernels/update_ranges_cuda.h"
#include "onebit/math/updates/adam_update.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::updates::cuda {

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
  double memory, rest2;
  int turn;
  float energy_updates[kSubBlocks];
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

// The signs of the sketch of a thread's elements.
__device__ uint32_t signs_at(const Normalize& a, int64_t at) {
  return a.alone ? 0 : noise_signs(a.key, static_cast<uint64_t>((at + a.shift) / 32)) >> (at % 32);
}

// Loads a thread's elements. `gradient` is then scaled, decayed, and 0 in still entries.
__device__ EightGradients read_gradients(const Normalize& a, float decay, int64_t at) {
  const float largest = static_cast<float>(sqrt(kLargestFinite));
  EightGradients mine;
  mine.variance = load_eight(a.variance + at, kEight);
  mine.gradient = load_eight(a.gradient + at, kEight);
  Eight value;
  if (decay != 0.0f) value = load_eight(a.value + at, kEight);
  const uint32_t signs = signs_at(a, at);
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

// The sums of a sub-block over its warp, in which the squares of spikes count as far as `counted`.
struct WarpSums {
  float square, sum, signed_sum;
  float whole_square;  // with all squares
  float least_spike = INFINITY, counted = 1;
};

// Cuts the squares of a sub-block's spikes to what may count, if there are any. `signs`: the
// thread's eight of the sketch.
__device__ void cut_spikes(const Normalize& a, const EightGradients& mine, uint32_t signs,
                           double ratio, WarpSums& sums) {
  const auto least = static_cast<float>(ratio * fmax(kLeastSpike, 1 / a.rest2));
  float square = 0, signed_sum = 0, other_square = 0, other_signed_sum = 0, spikes = 0, moving = 0;
  for (int i = 0; i < kEight; ++i) {
    const float g = mine.gradient.lane[i], v = mine.variance.lane[i];
    const float with_sign = (signs >> i & 1u) != 0 ? -g : g;
    const bool spike = g * g > least * v;
    spikes += spike ? 1.0f : 0.0f;
    moving += v > 0.0f ? 1.0f : 0.0f;
    square += spike ? g * g : 0.0f;
    signed_sum += spike ? with_sign : 0.0f;
    other_square += spike ? 0.0f : g * g;
    other_signed_sum += spike ? 0.0f : with_sign;
  }
  if (__ballot_sync(kAllLanes, spikes > 0) == 0) return;
  sums.least_spike = least;
  if (2 * warp_sum(spikes) > warp_sum(moving)) return;
  square = warp_sum(square);
  const double most = kSpikeShare * ratio * double{sums.sum} / a.rest2;
  sums.counted = static_cast<float>(fmin(1.0, most / double{square}));
  sums.square = warp_sum(other_square) + sums.counted * square;
  sums.signed_sum = warp_sum(other_signed_sum) + sqrtf(sums.counted) * warp_sum(signed_sum);
}

// What a thread computes its elements with, as the passes for CPUs do.
struct Normalizing {
  float kept, grown, own, shrink, least_spike, counted;
};

// Stores a thread's normalized gradient and its variance. For a block that is not finite: stores
// zeros and keeps the variance.
__device__ void write_normalized(const Normalize& a, EightGradients& mine, const Normalizing& by,
                                 bool finite, int64_t at) {
  Eight result;
  for (int i = 0; i < kEight && finite; ++i) {
    const float before = mine.variance.lane[i], g = mine.gradient.lane[i];
    const bool moves = before > 0.0f;
    const float v = fmaf(by.own, g * g, by.kept * by.grown * before);
    const float counted = g * g > by.least_spike * before ? by.counted : 1.0f;
    const float next = fmaf(by.own * counted, g * g, by.kept * before);
    result.lane[i] = moves ? g / (sqrtf(fmaxf(v, kSmallestVariance)) + a.epsilon) : 0.0f;
    mine.variance.lane[i] = moves ? fmaxf(next * by.shrink, kSmallestVariance) : 0.0f;
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
    const double updates = a.energy_updates[sub_block];
    a.extra[block - a.begin / kBlockElements] = bounded(1 / updates * double{energy});
    energy = 0;
  }
}

// Updates the sketch of a block, by one of its threads, from the sums of all sub-blocks.
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

// The factor by which the energy of this rank alone, with this update's, would change the variance
// of a sub-block. It is 1 if it is less than 2, which is all that matters.
__device__ double growth_of(const Normalize& a, int sub_block, double energy) {
  const double updates = a.energy_updates[sub_block];
  if (energy <= 2 * updates) return 1;
  const double memory = pow(a.memory, updates);
  return memory + (1 - memory) * energy / updates;
}

__device__ Normalizing normalizing_of(const Normalize& a, int64_t block, int sub_block, double own,
                                      const WarpSums& sums) {
  Normalizing by{.kept = a.alone ? a.beta2 : 1.0f,
                 .grown = 1,
                 .own = static_cast<float>(own),
                 .shrink = 1,
                 .least_spike = sums.least_spike,
                 .counted = sums.counted};
  const double sum = sums.sum, grown = sum + own * double{sums.square};
  if (a.alone || grown == 0) return by;
  by.shrink = static_cast<float>(sum / grown);
  const double energy = double{a.energy[block * kSubBlocks + sub_block]} +
                        double{sums.square} / (double{a.block_ratio[block]} * sum);
  by.grown =
      static_cast<float>(fmin(fmax(growth_of(a, sub_block, energy) - 1, 1.0), kLargestFinite));
  return by;
}

// A warp processes one sub-block, so the sums of a warp are the sub-block's.
__global__ void normalize(Normalize a, const UpdateRange* ranges, int range_count) {
  const int64_t first = a.begin + int64_t{blockIdx.x} * kBlockElements;
  const int64_t at = first + int64_t{threadIdx.x} * kEight;
  const int64_t block = first / kBlockElements;
  const int sub_block = static_cast<int>(threadIdx.x) / kWarp;
  const bool here = at < a.end;
  EightGradients mine;
  if (here) mine = read_gradients(a, settings_at(ranges, range_count, at).decay, at);
  WarpSums sums{.square = warp_sum(mine.square),
                .sum = warp_sum(mine.sum),
                .signed_sum = warp_sum(mine.signed_sum)};
  sums.whole_square = sums.square;
  const double own = own_share(a, block, sub_block);
  const bool bearable = double{sums.square} <= kLargestFinite &&
                        (a.alone || own * double{sums.square} <= kLargestFinite * double{sums.sum});
  if (!a.alone && bearable) cut_spikes(a, mine, signs_at(a, at), a.block_ratio[block], sums);
  const bool moved = __syncthreads_or(mine.still_moved) != 0;
  const bool finite = __syncthreads_and(bearable && mine.readable) != 0;
  if (here) {
    write_normalized(a, mine, normalizing_of(a, block, sub_block, own, sums), finite, at);
  }
  __syncwarp();  // every lane has read the energy
  const bool leads = threadIdx.x % kWarp == 0;
  if (leads && !a.alone) add_energy(a, block, sub_block, sums.square, sums.sum, finite);
  const float first_lane = leads ? 1.0f : 0.0f;
  const Sums squares = block_sums({first_lane * sums.square, first_lane * sums.sum});
  const Sums others = block_sums({first_lane * sums.whole_square, first_lane * sums.signed_sum});
  if (threadIdx.x != 0) return;
  a.block_square[block] = finite ? double{others.first} : 0;
  a.block_flags[block] = !finite ? kBlockNotFinite : moved ? kBlockStillMoved : 0;
  if (!a.alone) add_sketch(a, block, squares.first, squares.second, others.second, finite);
}

struct Momentum {
  float *momentum, *variance;
  const float *normalized, *extra;  // may be null
  int64_t begin, end;
  float beta, rest, limit;
  double turn_memory;
  int turn;
};

// One thread block per block of the flat buffer, eight elements per thread. One warp follows the
// variance of the sub-block whose turn it is.
__global__ void momentum(Momentum a) {
  const int64_t first = a.begin + int64_t{blockIdx.x} * kBlockElements;
  const int64_t at = first + int64_t{threadIdx.x} * kEight;
  if (at >= a.end) return;
  if (a.normalized != nullptr) {
    Eight m = load_eight(a.momentum + at, kEight);
    const Eight y = load_eight(a.normalized + (at - a.begin), kEight);
    for (int i = 0; i < kEight; ++i) {
      const float next = fmaf(a.beta, m.lane[i], a.rest * y.lane[i]);
      const float clamped = fmaxf(-a.limit, fminf(next, a.limit));
      m.lane[i] = fabsf(next) >= kSmallestMomentum ? clamped : 0.0f;
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
  double learning_rate;
  float factor;
};

// One thread per eight elements. Still entries keep their values.
__global__ void step(Step a, ComputeCopy copy, const UpdateRange* ranges, int range_count) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= a.elements) return;
  const RangeSettings range = settings_at(ranges, range_count, at);
  const auto rate = static_cast<float>(a.learning_rate * range.rate);
  const unsigned still = a.still[at / kEight];
  Eight value = load_eight(a.value + at, kEight);
  const Eight m = load_eight(a.momentum + at, kEight);
  for (int i = 0; i < kEight; ++i) {
    const float moved =
        fmaf(-rate, fmaf(range.decay, value.lane[i], a.factor * m.lane[i]), value.lane[i]);
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
  Normalize call{.gradient = a.gradient.data<float>(),
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
                 .memory = a.beta2,
                 .rest2 = 1 - a.beta2,
                 .turn = static_cast<int>(a.turn),
                 .energy_updates = {},
                 .key = a.sketch_key,
                 .alone = a.alone};
  for (size_t i = 0; i < a.energy_updates.size(); ++i) {
    call.energy_updates[i] = static_cast<float>(a.energy_updates[i]);
  }
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
                      .limit = static_cast<float>(a.limit),
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
                  .learning_rate = a.learning_rate,
                  .factor = static_cast<float>(a.momentum_factor)};
  launch("onebit_step", cuda, update_blocks(elements), kThreads, step, call,
         ComputeCopy(a.compute_value), ranges.data(), ranges.count());
}

}  // namespace onebit::updates::cuda
