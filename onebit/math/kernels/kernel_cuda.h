// What most CUDA kernels are made of: eight elements at a time, sums over a block, typed pointers,
// the sizes of launches. For *_cuda.cu only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "onebit/math/kernels/block_sums_cuda.h"
#include "onebit/math/kernels/eight_cuda.h"
#include "onebit/math/kernels/launch_cuda.h"
#include "onebit/math/tensor/view.h"

namespace onebit::kernels::cuda {

// Whether all addresses, null ones apart, are multiples of 16 bytes, as load_whole needs.
inline bool are_aligned(std::initializer_list<const void*> addresses) {
  return std::ranges::all_of(
      addresses, [](const void* one) { return reinterpret_cast<uintptr_t>(one) % 16 == 0; });
}

template <typename T>
const T* pointer(const ConstView& view) {
  return static_cast<const T*>(view.raw());
}
template <typename T>
T* pointer(const View& view) {
  return static_cast<T*>(view.raw());
}

// Calls body(tag) with a tag of the activation type as the device represents it.
template <class Body>
void with_device_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(float{});
    case DType::kBF16:
      return body(__nv_bfloat16{});
    case DType::kF16:
      return body(__half{});
    default:
      ONEBIT_INVARIANT(!"a floating-point type of at most 32 bits");
  }
}

// The number of blocks of `size` that cover `count`.
inline unsigned blocks_of(int64_t count, int64_t size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

// The threads of a block that holds one row in registers, eight columns per thread.
inline constexpr int64_t kLargestRow = 4096;
inline unsigned row_threads(int64_t columns, const char* operation) {
  require(columns <= kLargestRow, "{}: rows of {} columns; on CUDA devices at most {} are possible",
          operation, columns, kLargestRow);
  return blocks_of(columns, kEight * kWarp) * kWarp;
}

}  // namespace onebit::kernels::cuda
