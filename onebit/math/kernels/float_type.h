// Maps a dtype known at run time to the element type of a loop.
#pragma once

#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/error.h"

namespace onebit::kernels {

// Calls body(tag) with a tag of the activation type: `using T = decltype(tag)`.
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

}  // namespace onebit::kernels
