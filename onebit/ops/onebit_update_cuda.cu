#include "onebit/ops/cuda_ops.h"
#include "onebit/ops/update_formula.h"
#include "onebit/ops/update_ranges_cuda.h"

namespace onebit::ops::cuda {
namespace {

// A thread block does one block of the buffer: eight elements a thread.
constexpr int kThreads = kUpdateBlockElements / kEight;

__device__ float mean_energy(float sum, float live) {
  if (live == 0) return 0;
  return static_cast<float>(fmin(double{sum} / double{live}, 1e30));
}

// Flat buffers end on a multiple of 16, so a thread has all of its eight elements or none.
__global__ void freeze(float* momentum, float* variance, uint8_t* still, int64_t elements,
                       float factor, float epsilon, bool preconditioned) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= elements) return;
  Eight x = load_eight(momentum + at, kEight), v = load_eight(variance + at, kEight);
  unsigned bits = 0;
  for (int i = 0; i < kEight; ++i) {
    const float inverse = frozen_inverse(v.lane[i], factor, epsilon);
    const float travels = preconditioned ? x.lane[i] * inverse : x.lane[i];
    x.lane[i] = v.lane[i] > 0.0f ? travels : 0.0f;
    v.lane[i] = inverse;
    bits |= static_cast<unsigned>(inverse == 0.0f) << i;
  }
  store_eight(x, momentum + at, kEight);
  store_eight(v, variance + at, kEight);
  still[at / kEight] = static_cast<uint8_t>(bits);
}

__global__ void energy(const float* gradient, const float* variance, float* block_energy,
                       int64_t begin, int64_t end, float factor, float epsilon) {
  const int64_t first = begin + int64_t{blockIdx.x} * kUpdateBlockElements;
  const int64_t at = first + int64_t{threadIdx.x} * kEight;
  Sums sums{0, 0};  // energy, live entries
  if (at < end) {
    const Eight g = load_eight(gradient + at, kEight), v = load_eight(variance + at, kEight);
    for (int i = 0; i < kEight; ++i) {
      const float denominator = sqrtf(factor * v.lane[i]) + epsilon;
      const float ratio = v.lane[i] > 0.0f ? g.lane[i] / denominator : 0.0f;
      sums.first = fmaf(ratio, ratio, sums.first);
      sums.second += v.lane[i] > 0.0f ? 1.0f : 0.0f;
    }
  }
  sums = block_sums(sums);
  if (threadIdx.x != 0) return;
  block_energy[first / kUpdateBlockElements] = mean_energy(sums.first, sums.second);
}

struct Momentum {
  float *momentum, *inverse;
  const float *gradient, *value;
  const float* block_ratio;  // null: d is held
  float* block_energy;       // null: not wanted
  double* block_square;
  uint8_t* block_flags;
  int64_t begin, end;
  float scale, beta, rest, beta2, largest_inverse;
  double rest2;
  bool preconditioned;
};

struct MomentumSums {
  float energy = 0, square = 0, live = 0;
  bool finite = true, still_moved = false;
};

// One thread's elements, with the gradient or with zero in its place; `rest2` is 0 where d is held.
__device__ Eight advance(const Momentum& a, const Eight& before, Eight& inverse,
                         const Eight& gradient, const Eight& value, float decay, float rest2,
                         bool zero, MomentumSums& sums) {
  Eight result;
  const float largest = static_cast<float>(kLargestFinite);
  for (int i = 0; i < kEight; ++i) {
    const bool moves = inverse.lane[i] > 0.0f;
    float g = 0;
    if (!zero) {
      g = a.scale * gradient.lane[i];
      sums.still_moved = sums.still_moved || (!moves && gradient.lane[i] != 0.0f);
      if (decay != 0.0f) g = fmaf(decay, value.lane[i], g);
      sums.square = fmaf(g, g, sums.square);
    }
    float ratio = g * inverse.lane[i];
    if (rest2 != 0.0f && !zero) {
      const float growth = divisor_growth(ratio, a.beta2, rest2);
      sums.finite = sums.finite && growth <= largest;
      inverse.lane[i] = fminf(inverse.lane[i] / growth, a.largest_inverse);
      ratio = g * inverse.lane[i];
    }
    if (a.block_energy != nullptr) {
      sums.energy = fmaf(ratio, ratio, sums.energy);
      sums.live += moves ? 1.0f : 0.0f;
    }
    const float x = fmaf(a.beta, before.lane[i], a.rest * (a.preconditioned ? ratio : g));
    sums.finite = sums.finite && fabsf(x) <= largest && fabsf(g) <= largest;
    result.lane[i] = moves ? x : 0.0f;
  }
  return result;
}

__global__ void momentum(Momentum a, const UpdateRange* ranges, int range_count) {
  const int64_t first = a.begin + int64_t{blockIdx.x} * kUpdateBlockElements;
  const int64_t at = first + int64_t{threadIdx.x} * kEight;
  const bool here = at < a.end;
  Eight before, inverse, gradient, value, x;
  float decay = 0, rest2 = 0;
  MomentumSums sums;
  if (a.block_ratio != nullptr) {
    rest2 = static_cast<float>(a.rest2 / double{a.block_ratio[first / kUpdateBlockElements]});
  }
  if (here) {
    before = load_eight(a.momentum + at, kEight);
    inverse = load_eight(a.inverse + at, kEight);
    gradient = load_eight(a.gradient + at, kEight);
    decay = decay_at(ranges, range_count, at);
    if (decay != 0.0f) value = load_eight(a.value + at, kEight);
    x = advance(a, before, inverse, gradient, value, decay, rest2, false, sums);
  }
  const bool moved = __syncthreads_or(sums.still_moved) != 0;
  const bool finite = __syncthreads_and(sums.finite) != 0;
  if (!finite && here) {
    sums = {};
    inverse = load_eight(a.inverse + at, kEight);
    x = advance(a, before, inverse, gradient, value, decay, rest2, true, sums);
  }
  if (here) store_eight(x, a.momentum + at, kEight);
  if (here && rest2 != 0.0f) store_eight(inverse, a.inverse + at, kEight);
  const Sums totals = block_sums({sums.energy, sums.square});
  const float live = a.block_energy == nullptr ? 0 : block_sum(sums.live);
  if (threadIdx.x != 0) return;
  const int64_t block = first / kUpdateBlockElements;
  if (a.block_energy != nullptr) a.block_energy[block] = mean_energy(totals.first, live);
  a.block_square[block] = double{totals.second};
  a.block_flags[block] = !finite ? kBlockNotFinite : moved ? kBlockStillMoved : 0;
}

struct Step {
  float* value;
  const float *momentum, *inverse;  // inverse may be null
  const uint8_t* still;
  const float* block_factor;
  int64_t elements;
  float rate;
};

__global__ void step(Step a, ComputeCopy copy, const UpdateRange* ranges, int range_count) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= a.elements) return;
  const float factor = a.block_factor[blockIdx.x], decay = decay_at(ranges, range_count, at);
  const unsigned still = a.still[at / kEight];
  Eight value = load_eight(a.value + at, kEight), x = load_eight(a.momentum + at, kEight);
  if (a.inverse != nullptr) {
    const Eight inverse = load_eight(a.inverse + at, kEight);
    for (int i = 0; i < kEight; ++i) x.lane[i] *= inverse.lane[i];
  }
  for (int i = 0; i < kEight; ++i) {
    const float moved = onebit_stepped(value.lane[i], x.lane[i], factor, a.rate, decay);
    value.lane[i] = (still >> i & 1u) != 0 ? value.lane[i] : moved;
  }
  store_eight(value, a.value + at, kEight);
  copy.store(value, at, kEight);
}

unsigned update_blocks(int64_t elements) {
  return blocks_of(elements, kUpdateBlockElements);
}

}  // namespace

void onebit_freeze(Context& context, const OnebitFreeze& a) {
  const int64_t elements = a.momentum.elements();
  if (elements == 0) return;
  CudaStream& door = CudaStream::of(context);
  freeze<<<update_blocks(elements), kThreads, 0, door.stream()>>>(
      a.momentum.data<float>(), a.variance.data<float>(), a.still.data<uint8_t>(), elements,
      static_cast<float>(a.variance_factor), static_cast<float>(a.epsilon), a.preconditioned);
  check_launch("onebit_freeze");
}

void onebit_energy(Context& context, const OnebitEnergy& a) {
  if (a.begin == a.end) return;
  CudaStream& door = CudaStream::of(context);
  energy<<<update_blocks(a.end - a.begin), kThreads, 0, door.stream()>>>(
      a.gradient.data<float>(), a.variance.data<float>(), a.block_energy.data<float>(), a.begin,
      a.end, static_cast<float>(a.variance_factor), static_cast<float>(a.epsilon));
  check_launch("onebit_energy");
}

void onebit_momentum(Context& context, const OnebitMomentum& a) {
  if (a.begin == a.end) return;
  CudaStream& door = CudaStream::of(context);
  const DeviceRanges ranges(door, a.ranges);
  const Momentum call{
      .momentum = a.momentum.data<float>(),
      .inverse = a.inverse.data<float>(),
      .gradient = a.gradient.data<float>(),
      .value = a.ranges.empty() ? nullptr : a.value.data<float>(),
      .block_ratio = a.block_ratio.empty() ? nullptr : a.block_ratio.data<float>(),
      .block_energy = a.block_energy.empty() ? nullptr : a.block_energy.data<float>(),
      .block_square = a.block_square.data<double>(),
      .block_flags = a.block_flags.data<uint8_t>(),
      .begin = a.begin,
      .end = a.end,
      .scale = static_cast<float>(a.gradient_scale),
      .beta = static_cast<float>(a.beta1),
      .rest = static_cast<float>(1 - a.beta1),
      .beta2 = static_cast<float>(a.beta2),
      .largest_inverse = static_cast<float>(1 / a.epsilon),
      .rest2 = 1 - a.beta2,
      .preconditioned = a.preconditioned};
  momentum<<<update_blocks(a.end - a.begin), kThreads, 0, door.stream()>>>(call, ranges.data(),
                                                                           ranges.count());
  check_launch("onebit_momentum");
}

void onebit_step(Context& context, const OnebitStep& a) {
  const int64_t elements = a.value.elements();
  if (elements == 0) return;
  CudaStream& door = CudaStream::of(context);
  const DeviceRanges ranges(door, a.ranges);
  const Step call{.value = a.value.data<float>(),
                  .momentum = a.momentum.data<float>(),
                  .inverse = a.inverse.data<float>(),
                  .still = a.still.data<uint8_t>(),
                  .block_factor = a.block_factor.data<float>(),
                  .elements = elements,
                  .rate = static_cast<float>(a.learning_rate)};
  step<<<update_blocks(elements), kThreads, 0, door.stream()>>>(call, ComputeCopy(a.compute_value),
                                                                ranges.data(), ranges.count());
  check_launch("onebit_step");
}

}  // namespace onebit::ops::cuda
