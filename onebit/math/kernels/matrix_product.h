// One matrix product in plain row-major layouts, with the epilogue that is applied to the result
// before it is stored. linear.cc describes products, linear_cpu.cc and linear_cuda.cu compute them.
#pragma once

#include <cstdint>

#include "onebit/math/tensor/view.h"

namespace onebit::kernels {

enum class Epilogue : uint8_t {
  kNone,
  kBias,              // c = a . b + bias
  kBiasGeluTanh,      // pre_activation = a . b + bias,  c = gelu_tanh(a . b + bias)
  kGeluTanhGradient,  // c = (a . b) gelu_tanh'(saved)
  kRowSums,           // row_sums += sums of a over k,  c = a . b
};

struct MatrixProduct {
  ConstView a;  // [m, k], or [k, m] if a_transposed. The outer extent is a number of tokens
  bool a_transposed = false;
  ConstView b;  // [k, n], or [n, k] if b_transposed, of a's type
  bool b_transposed = false;
  View c;                   // [m, n]  overwritten, f32 or of a's type
  bool accumulate = false;  // adds to c instead of overwriting it
  Epilogue epilogue = Epilogue::kNone;
  ConstView bias;       // [n], f32 or c's type
  View pre_activation;  // [m, n]   of c's type, overwritten
  ConstView saved;      // [m, n]   of c's type
  View row_sums;        // f32 [m]  added to
  bool tf32 = false;    // a CUDA device rounds f32 operands to tf32

  int64_t m() const { return c.extent(0); }
  int64_t n() const { return c.extent(1); }
  int64_t k() const { return a.extent(a_transposed ? 0 : 1); }
};

}  // namespace onebit::kernels
