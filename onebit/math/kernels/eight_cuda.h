// Element types, and eight elements at a time: loads, stores, dropout. For *_cuda.cu only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "onebit/math/kernels/dropout_mask.h"

namespace onebit::kernels::cuda {

// Elements that a thread processes together: half the elements of one Philox call, 16 bytes of a
// 16-bit type.
inline constexpr int kEight = 8;
__device__ inline float widen(float value) {
  return value;
}
__device__ inline float widen(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ inline float widen(__half value) {
  return __half2float(value);
}

// Rounds to nearest even.
template <typename T>
__device__ T narrow(float value);
template <>
__device__ inline float narrow<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half narrow<__half>(float value) {
  return __float2half_rn(value);
}

struct Eight {
  float lane[kEight] = {};
};

template <typename T>
__device__ bool is_aligned(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

// Eight elements as they lie in memory, at an address that is a multiple of 16 bytes. Several loads
// of these are in flight together. The loads of load_eight are not, because of their branches.
template <typename T>
struct alignas(16) Stored {
  T lane[kEight];
};
template <typename T>
__device__ Stored<T> load_stored(const T* from) {
  Stored<T> result;
  constexpr int kWords = kEight * sizeof(T) / sizeof(uint4);
  for (int i = 0; i < kWords; ++i) {
    reinterpret_cast<uint4*>(&result)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  return result;
}
template <typename T>
__device__ Eight widen(const Stored<T>& stored) {
  Eight result;
  for (int i = 0; i < kEight; ++i) result.lane[i] = widen(stored.lane[i]);
  return result;
}
template <typename T>
__device__ Eight load_whole(const T* from) {
  return widen(load_stored(from));
}

template <typename T>
__device__ void store_whole(const Eight& from, T* to) {
  alignas(16) T values[kEight];
  for (int i = 0; i < kEight; ++i) values[i] = narrow<T>(from.lane[i]);
  constexpr int kWords = kEight * sizeof(T) / sizeof(uint4);
  for (int i = 0; i < kWords; ++i) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(values)[i];
  }
}

// Loads elements [0, count) of `from`. The others are zero.
template <typename T>
__device__ Eight load_eight(const T* from, int64_t count) {
  if (count >= kEight && is_aligned(from)) return load_whole(from);
  Eight result;
  for (int i = 0; i < kEight; ++i) {
    if (i < count) result.lane[i] = widen(from[i]);
  }
  return result;
}

// load_eight() of two rows, whose loads are in flight together.
template <typename T>
__device__ void load_eight_of_both(const T* first, const T* second, int64_t count, Eight& x,
                                   Eight& y) {
  if (count >= kEight && is_aligned(first) && is_aligned(second)) {
    const Stored<T> stored = load_stored(first), other = load_stored(second);
    x = widen(stored);
    y = widen(other);
    return;
  }
  x = load_eight(first, count);
  y = load_eight(second, count);
}

template <typename T>
__device__ void store_eight(const Eight& from, T* to, int64_t count) {
  if (count >= kEight && is_aligned(to)) return store_whole(from, to);
  for (int i = 0; i < kEight; ++i) {
    if (i < count) to[i] = narrow<T>(from.lane[i]);
  }
}

// The key of a row's dropout bits, or 0 without dropout.
__device__ inline uint64_t row_key_of(const DropoutPlan& plan, int64_t row) {
  return plan.threshold == 0 ? 0 : plan.row_keys[row];
}

// Applies dropout to columns [8 * column_block, + 8) of the row with this key.
__device__ inline void drop_eight(Eight& values, const DropoutPlan& plan, uint64_t row_key,
                                  uint32_t column_block) {
  if (plan.threshold == 0) return;
  const uint32_t both =
      dropout_kept_16(plan.round_keys, plan.site, row_key, column_block / 2, plan.comparison);
  const uint32_t kept = both >> (8 * (column_block % 2));
  for (int i = 0; i < kEight; ++i) {
    values.lane[i] = (kept >> i & 1u) != 0 ? values.lane[i] * plan.scale : 0.0f;
  }
}

}  // namespace onebit::kernels::cuda
