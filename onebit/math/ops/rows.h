// Gathers rows by index and scatters them back.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// y[i] = x[indices[i]], elements of any type. On a CPU an index outside x is an error, and nothing
// is written.
struct GatherRows {
  ConstView x;        // [source_rows, columns]
  ConstView indices;  // i32 [rows]
  View y;             // [rows, columns]  overwritten
};
void gather_rows(Context&, const GatherRows&);

// y[indices[i]] += x[i]: the backward pass of gather_rows. Elements f32, bf16 or f16. Indices must
// be distinct (equal ones would race; the CPU checks this).
struct ScatterAddRows {
  ConstView x;        // [rows, columns]
  ConstView indices;  // i32 [rows]
  View y;             // [target_rows, columns]  added to
};
void scatter_add_rows(Context&, const ScatterAddRows&);

}  // namespace onebit::ops
