// The mean over the rows of each sequence of a packed batch, as used for sentence embeddings
// (Reimers and Gurevych, arXiv 1908.10084, "MEAN" pooling). There are no padded rows, so no mask is
// needed. Rows are f32, bf16 or f16, sums and means f32.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/sequence_starts.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

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
