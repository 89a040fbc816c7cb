// Sums over many elements. Results are the same for any number of threads. Functions that return a
// number wait for the device.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// Sum of x^2. x: f32, any shape.
double squared_norm(Context&, ConstView x);
// Sum of |x|. x: f32, any shape.
double absolute_sum(Context&, ConstView x);
// Whether every element is finite. f32, bf16 or f16, any shape.
bool all_finite(Context&, ConstView x);

struct ColumnSum {
  ConstView x;  // [rows, columns]  f32, bf16 or f16
  View sum;     // f32 [columns]    added to
};
void column_sum(Context&, const ColumnSum&);

}  // namespace onebit::ops
