// Matrix products on a CPU: what is asked of oneDNN, in plain row-major layouts. Packed layouts and
// inner-product primitives were measured to be no faster (bench/ops_bench.cc).
#pragma once

#include <cstdint>

#include "onebit/device/context.h"
#include "onebit/tensor/dtype.h"

namespace onebit::ops::cpu {

// c = a . b (+ bias) (+ c)
struct Matmul {
  int64_t m, n, k;
  DType operands;  // of a and b: f32, bf16 or f16
  const void* a;   // [m, k], or [k, m] if a_transposed
  bool a_transposed;
  const void* b;  // [k, n], or [n, k] if b_transposed
  bool b_transposed;
  const float* bias;  // [n], or null
  DType result;       // of c: f32 or that of the operands
  void* c;            // [m, n]
  bool accumulate;    // adds to c; otherwise c is overwritten
};

// Operands this processor cannot multiply (see bf16_is_native in linear.h) are widened into f32
// scratch first, the result is rounded after.
void matmul(Context&, const Matmul&);

}  // namespace onebit::ops::cpu
