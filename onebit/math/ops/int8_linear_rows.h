// The loops of int8_linear_cpu.cc over rows, compiled for each instruction set.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"

namespace onebit::ops {

// Rounds the rows of a weight: s8 values in -127 ... 127.
struct QuantiseWeight {
  const float* weight;  // [rows, columns]
  int64_t rows, columns;
  int8_t* values;  // [rows, columns]  overwritten
  float* scales;   // [rows]           overwritten. NaN where a number is not finite
  int32_t* sums;   // [rows]           overwritten: of the values
};

// Rounds the rows of an input: u8 values around a zero, which is one of them.
struct QuantiseInput {
  const float* x;  // [rows, columns]
  int64_t rows, columns;
  uint8_t* values;  // [rows, columns]  overwritten
  float* scales;    // [rows]           overwritten. NaN where a number is not finite
  int32_t* zeros;   // [rows]           overwritten
};

// Sums of products of values to numbers, in place: y = (sum - zero * weight sum) * scale *
// weight scale + bias.
struct DequantiseSums {
  float* y;  // [rows, columns]  i32 before, f32 after
  int64_t rows, columns;
  const float* scales;         // [rows]
  const int32_t* zeros;        // [rows]
  const float* weight_scales;  // [columns]
  const int32_t* weight_sums;  // [columns]
  const float* bias;           // [columns], or null
};

namespace cpu {

void quantise_weight(Context&, const QuantiseWeight&);
void quantise_input(Context&, const QuantiseInput&);
void dequantise_sums(Context&, const DequantiseSums&);

}  // namespace cpu
}  // namespace onebit::ops
