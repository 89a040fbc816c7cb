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

// The mean over the rows of each sequence of a packed batch, as used for sentence embeddings
// (Reimers and Gurevych, arXiv 1908.10084, "MEAN" pooling). There are no padded rows, so no mask is
// needed. Rows are f32, bf16 or f16, sums and means f32.

// y[s] = the sum of x[r] over the rows r of sequence s, divided by their number. Errors: a sequence
// without rows, starts that do not cover x.
struct SequenceMean {
  ConstView x;                     // [rows, columns]
  SequenceStarts sequence_starts;  // [sequences + 1]
  View y;                          // f32 [sequences, columns]  overwritten
};
void sequence_mean(Context&, const SequenceMean&);

// grad_x[r] = grad_y[s] / (number of rows of s), where s is the sequence of row r.
struct SequenceMeanBackward {
  ConstView grad_y;                // f32 [sequences, columns]
  SequenceStarts sequence_starts;  // [sequences + 1]
  View grad_x;                     // [rows, columns]  overwritten
};
void sequence_mean_backward(Context&, const SequenceMeanBackward&);

}  // namespace onebit::ops
