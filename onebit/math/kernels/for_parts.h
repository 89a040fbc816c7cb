// What the CPU halves of operations share: element types, loops over parts, scratch memory of a
// row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/context.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/dropout_mask.h"

namespace onebit::kernels {

// Calls body(tag) with a tag of the activation type `dtype`: `using T = decltype(tag)`.
template <class Body>
void with_float_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(float{});
    case DType::kBF16:
      return body(bf16{});
    case DType::kF16:
      return body(f16{});
    default:
      ONEBIT_INVARIANT(!"a floating-point type of at most 32 bits");
  }
}

// The number of parts into which for_parts divides `count` items if a thread should get `grain`.
inline int64_t part_count(const Context& context, int64_t count, int64_t grain) {
  return std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, context.threads());
}

// Calls body(part, begin, end) for consecutive parts of [0, count), in parallel. Never allocates.
template <class Body>
void for_parts(const Context& context, int64_t count, int64_t grain, const Body& body) {
  const int64_t parts = part_count(context, count, grain);
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
      if (begin < end) body(part, begin, end);
    }
  };
  context.parallel_for(parts, 1, std::ref(run));
}

// The grain with which a thread has at least 16384 elements if an item has `item_elements`.
inline int64_t grain_for(int64_t item_elements) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(item_elements, 1));
}

// Scratch memory of a thread for one row: two f32 rows and the row's dropout bits.
class RowScratch {
 public:
  RowScratch(Context& context, int64_t parts, int64_t columns)
      : columns_(columns),
        stride_bytes_((columns * 8 + dropout_bits_elements(columns) * 2 + 63) / 64 * 64),
        memory_(context.scratch().take(parts * stride_bytes_)) {}

  float* first(int64_t part) const {
    return reinterpret_cast<float*>(memory_.data() + part * stride_bytes_);
  }
  float* second(int64_t part) const { return first(part) + columns_; }
  uint16_t* bits(int64_t part) const {
    return reinterpret_cast<uint16_t*>(second(part) + columns_);
  }

 private:
  int64_t columns_, stride_bytes_;
  Scratch::Block memory_;
};

}  // namespace onebit::kernels
