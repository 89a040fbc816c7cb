// The part of CUDA C++ that onebit's kernels use, for the host's compiler. A device thread is a
// fibre (thread_block.h), and collectives are functions that receive their source location.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>
#include <source_location>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
      : x(width), y(height), z(depth) {}
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

// Properties of the running thread: one host thread at a time runs device threads.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace emulated_cuda {

using Place = std::source_location;

// Prints the running thread's indices and source location, and ends the process.
[[noreturn]] void fault(const char* what);

// The operands of one lane in a collective of its warp, which the other lanes read.
struct Operands {
  uint32_t word[6];
};
struct WarpOperands {
  Operands lane[32];
};

// Collectives return when all participating threads have reached the same place. Faults: a lane of
// `mask` has ended or waits elsewhere, or the caller is not in `mask`.
// Operands are passed by value as pairs of words: passing them through memory, with reads of
// another size than the writes, would double the cost.
const WarpOperands& exchange(unsigned mask, const Place& place, uint64_t first, uint64_t second = 0,
                             uint64_t third = 0);
// A collective that also orders the memory accesses of the lanes, which exchanges do not.
void warp_barrier(unsigned mask, const Place& place);
// The number of threads of the block with a true vote. Orders the memory accesses of the block.
int block_vote(bool mine, const Place& place);
int lane_index();

template <typename T>
uint64_t bits_of(T value) {
  static_assert(sizeof value <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T>
T value_of(const Operands& operands) {
  T value;
  std::memcpy(&value, operands.word, sizeof value);
  return value;
}

// The value of lane `from`, or the caller's own if there is no such lane.
template <typename T>
T shuffle(unsigned mask, T mine, int from, const Place& place) {
  const WarpOperands& all = exchange(mask, place, bits_of(mine));
  if (from < 0 || from >= 32) return mine;
  if ((mask >> from & 1u) == 0) fault("a shuffle reads a lane that is not in its mask");
  return value_of<T>(all.lane[from]);
}

template <typename T, class Add>
T reduce(unsigned mask, T mine, const Add& add, const Place& place) {
  const WarpOperands& all = exchange(mask, place, bits_of(mine));
  T sum{};
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1u) != 0) sum = add(sum, value_of<T>(all.lane[lane]));
  }
  return sum;
}

}  // namespace emulated_cuda

inline void __syncthreads(const std::source_location& place = std::source_location::current()) {
  emulated_cuda::block_vote(false, place);
}
inline int __syncthreads_or(int predicate,
                            const std::source_location& place = std::source_location::current()) {
  return emulated_cuda::block_vote(predicate != 0, place) > 0;
}
inline int __syncthreads_and(int predicate,
                             const std::source_location& place = std::source_location::current()) {
  return emulated_cuda::block_vote(predicate == 0, place) == 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu,
                       const std::source_location& place = std::source_location::current()) {
  emulated_cuda::warp_barrier(mask, place);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int from,
              const std::source_location& place = std::source_location::current()) {
  return emulated_cuda::shuffle(mask, value, from & 31, place);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance,
                  const std::source_location& place = std::source_location::current()) {
  return emulated_cuda::shuffle(mask, value, emulated_cuda::lane_index() ^ distance, place);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance,
                   const std::source_location& place = std::source_location::current()) {
  const int from = emulated_cuda::lane_index() + static_cast<int>(distance);
  return emulated_cuda::shuffle(mask, value, from, place);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              const std::source_location& place = std::source_location::current()) {
  const unsigned mine = predicate != 0 ? 1u << emulated_cuda::lane_index() : 0;
  return emulated_cuda::reduce(
      mask, mine, [](unsigned a, unsigned b) { return a | b; }, place);
}
inline unsigned __reduce_add_sync(
    unsigned mask, unsigned value,
    const std::source_location& place = std::source_location::current()) {
  return emulated_cuda::reduce(
      mask, value, [](unsigned a, unsigned b) { return a + b; }, place);
}
inline unsigned __reduce_or_sync(
    unsigned mask, unsigned value,
    const std::source_location& place = std::source_location::current()) {
  return emulated_cuda::reduce(
      mask, value, [](unsigned a, unsigned b) { return a | b; }, place);
}

// The low word of (high:low) shifted right by `count` % 32.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned count) {
  const uint64_t both = uint64_t{high} << 32 | low;
  return static_cast<unsigned>(both >> (count % 32));
}
inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
inline float normcdff(float x) {
  return static_cast<float>(0.5 * erfc(-double{x} * 0.70710678118654752440));
}
template <typename T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
