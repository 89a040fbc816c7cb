// Matrix products on a CUDA device, in plain row-major layouts: cuBLASLt where rows are whole
// multiples of 16 bytes, a plain kernel of ours for the small odd shapes that are not (a classifier
// of two labels). Which algorithm cuBLASLt uses depends on the shape alone, never on a measurement,
// so that two runs give the same bits.
#pragma once

#include <cstdint>

#include "onebit/device/context.h"
#include "onebit/tensor/dtype.h"

namespace onebit::ops::cuda {

// c = a . b (+ bias) (+ c)
struct Matmul {
  // Which extent is a number of tokens, different in every batch.
  enum class Rows { kM, kK };

  int64_t m, n, k;
  Rows rows;
  DType operands;  // of a and b: f32, bf16 or f16
  const void* a;   // [m, k], or [k, m] if a_transposed
  bool a_transposed;
  const void* b;  // [k, n], or [n, k] if b_transposed
  bool b_transposed;
  const float* bias;  // [n], or null; rounded to the result's type before it is added
  DType result;       // of c: f32 or that of the operands
  void* c;            // [m, n]
  bool accumulate;    // adds to c; otherwise c is overwritten
};

void matmul(Context& context, const Matmul& call);

}  // namespace onebit::ops::cuda
