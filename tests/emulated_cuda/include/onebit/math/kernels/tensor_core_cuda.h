// Replaces kernels/tensor_core_cuda.h on the emulated device: its folder is searched first.
// Implements the PTX manual's sections "cp.async", "ldmatrix" and "mma" (fragments of m16n8k16,
// 16-bit types).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "tests/emulated_cuda/tensor_core.h"
#include "tests/emulated_cuda/thread_block.h"

namespace onebit::kernels::cuda {

using emulated_cuda::Place;

inline uint32_t shared_address(const void* data) {
  return emulated_cuda::shared_offset(data);
}

inline void start_copy(uint32_t to, const void* from, bool exists) {
  emulated_cuda::start_copy(to, from, exists, 16);
}
inline void start_small_copy(uint32_t to, const void* from, bool exists) {
  emulated_cuda::start_copy(to, from, exists, 8);
}
inline void end_copy_group() {
  emulated_cuda::end_copy_group();
}
inline void wait_for_copies() {
  emulated_cuda::wait_for_copy_groups(0);
}

struct Quad {
  uint32_t word[4];
};

// Row r of matrix m starts at the address of lane 8 m + r. From each matrix (or its transpose), a
// thread gets row lane / 4, columns 2 (lane % 4) and the next.
inline Quad load_eight_by_eight(uint32_t address, bool transposed, const Place& place) {
  const auto& rows = emulated_cuda::exchange(0xFFFFFFFFu, place, address);
  const int group = emulated_cuda::lane_index() / 4, pair = emulated_cuda::lane_index() % 4 * 2;
  Quad result{};
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto element = [&](int row, int column) {
      const uint32_t begin = rows.lane[matrix * 8 + row].word[0];
      return uint32_t{emulated_cuda::shared_half(begin, column)};
    };
    result.word[matrix] = transposed ? element(pair, group) | element(pair + 1, group) << 16
                                     : element(group, pair) | element(group, pair + 1) << 16;
  }
  return result;
}
inline Quad load_matrices(uint32_t address, const Place& place = Place::current()) {
  return load_eight_by_eight(address, false, place);
}
inline Quad load_transposed(uint32_t address, const Place& place = Place::current()) {
  return load_eight_by_eight(address, true, place);
}

inline float half_of(uint32_t word, int half, __nv_bfloat16) {
  return __bfloat162float({static_cast<uint16_t>(word >> (16 * half))});
}
inline float half_of(uint32_t word, int half, __half) {
  return __half2float({static_cast<uint16_t>(word >> (16 * half))});
}

template <typename T>
void multiply_add(float (&c)[4], const Quad& a, uint32_t b0, uint32_t b1, T,
                  const Place& place = Place::current()) {
  const auto pair_of = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
  const auto& all = emulated_cuda::exchange(0xFFFFFFFFu, place, pair_of(a.word[0], a.word[1]),
                                            pair_of(a.word[2], a.word[3]), pair_of(b0, b1));
  emulated_cuda::add_fragments(c, emulated_cuda::lane_index(), all,
                               std::is_same_v<T, __nv_bfloat16>);
}

}  // namespace onebit::kernels::cuda
