// The input of a model: real tokens only, concatenated, with the first rows of the sequences.
#pragma once

#include <cstdint>

#include "onebit/math/tensor/view.h"

namespace onebit::model {

// One micro-batch, all views on the model's device.
struct DeviceBatch {
  ConstView tokens, segments, positions;  // i32 [rows]
  // The position that is 0 in `positions`. -1 in a batch with a token that has no position, which
  // gets the row before the first token's in the table of positions.
  int64_t lowest_position = 0;
  ConstView row_keys;              // u64 [rows], see kernels/dropout.h. Unused without dropout
  SequenceStarts sequence_starts;  // i32 [sequences + 1]

  // Labels of rows and of whole sequences, -1: none. Each model describes the ones that it reads.
  // The others are empty.
  ConstView labelled_rows;    // i32 [labelled]  rows whose token has a label, distinct
  ConstView row_labels;       // i32 [labelled]
  ConstView sequence_labels;  // i32 [sequences], or several for each sequence
  ConstView sequence_values;  // f32

  int64_t rows() const { return tokens.elements(); }
  int64_t sequences() const { return sequence_starts.device.elements() - 1; }
  // Rows of the first token ([CLS]) of each sequence: i32 [sequences].
  ConstView first_rows() const { return sequence_starts.device.rows(0, sequences()); }
};

// The largest micro-batch that a model is planned for.
struct BatchLimits {
  int64_t rows = 0;  // tokens
  int64_t sequences = 0;
  int64_t longest = 0;   // tokens of a sequence. 0: as many as the model has positions
  int64_t labelled = 0;  // labelled rows
};

}  // namespace onebit::model
