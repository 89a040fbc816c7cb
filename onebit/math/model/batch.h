// The input of a model: real tokens only, concatenated, with the first rows of the sequences.
#pragma once

#include <cstdint>

#include "onebit/math/tensor/sequence_starts.h"
#include "onebit/math/tensor/view.h"

namespace onebit::model {

// One micro-batch, all views on the model's device. Labels that the task does not use are empty.
struct DeviceBatch {
  ConstView tokens, segments, positions;  // i32 [rows]
  ConstView row_keys;              // u64 [rows]; see kernels/dropout.h. Unused without dropout
  SequenceStarts sequence_starts;  // i32 [sequences + 1]

  ConstView masked_rows;     // i32 [masked]     rows whose token is to be predicted, distinct
  ConstView masked_targets;  // i32 [masked]     the original token, or -1 for none
  ConstView next_sentence;   // i32 [sequences]  0: the second part follows the first, 1: it is
                             // random, -1: unlabelled
  ConstView spans;           // i32 [2, sequences]  first and last token of the answer, counted from
                             //                     the sequence's first row; -1: outside it
  ConstView classes;         // i32 [sequences]  label of the whole sequence, -1: none
  ConstView tagged_rows;     // i32 [tagged]     rows whose token is to be labelled, distinct
  ConstView tags;            // i32 [tagged]     their labels, -1: none
  ConstView label_values;    // f32 [sequences, outputs]  1 where a sequence has a label, else 0; or
                             // the numbers to be predicted

  int64_t rows() const { return tokens.elements(); }
  int64_t sequences() const { return sequence_starts.device.elements() - 1; }
  // Rows of the first token ([CLS]) of each sequence: i32 [sequences].
  ConstView first_rows() const { return sequence_starts.device.rows(0, sequences()); }
};

// The largest micro-batch that a model is planned for.
struct BatchLimits {
  int64_t rows = 0;  // tokens
  int64_t sequences = 0;
  int64_t longest = 0;  // tokens of a sequence; 0: as many as the model has positions
  int64_t masked = 0;   // masked rows; only in pre-training
  int64_t tagged = 0;   // tagged rows; only in tagging
};

}  // namespace onebit::model
