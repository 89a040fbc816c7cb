// A micro-batch: real tokens with sequence boundaries and no padding, and the labels of a task.
#pragma once

#include <cstdint>
#include <vector>

namespace onebit::batches {

// The largest sizes of a batch. Buffers reserved for them never grow.
struct BatchBounds {
  int64_t sequences = 0;
  int64_t rows = 0;
  int64_t longest = 0;  // tokens of a sequence. 0: not known
  int64_t labelled_rows = 0;
  int64_t sequence_values = 0;  // f32 numbers, of all sequences together

  // Grows each size to the size of `other` where that is larger. `longest` is known afterwards if
  // it is known in both.
  void include(const BatchBounds& other);
};

// A batch has at most so many `sequence_labels` for each sequence.
inline constexpr int64_t kMostSequenceLabels = 2;

// B sequences with T tokens in total. All vectors are in host memory.
struct Batch {
  std::vector<int32_t> tokens;           // [T] input of the model
  std::vector<int32_t> segments;         // [T] 0 for [CLS] A [SEP], 1 for B [SEP]
  std::vector<int32_t> positions;        // [T] from 0 in each sequence
  std::vector<int32_t> sequence_starts;  // [B + 1] rows; the last entry is T
  // [T] sample << 16 | row in the sample: the key of dropout masks, which then depend neither on
  // the number of ranks nor on the micro-batch.
  std::vector<uint64_t> row_keys;
  // [B] global sample numbers. A packed sample has several sequences.
  std::vector<uint64_t> samples;

  // The labels, in lists that are empty where the task does not use them. The task's model reads
  // them under the same names in model::DeviceBatch.
  std::vector<int32_t> labelled_rows;    // [L] rows whose token has a label, ascending
  std::vector<int32_t> row_labels;       // [L] labels of these rows
  std::vector<int32_t> sequence_labels;  // [B] or [n, B]
  std::vector<float> sequence_values;

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t sequences() const {
    return sequence_starts.empty() ? 0 : static_cast<int64_t>(sequence_starts.size()) - 1;
  }
  // The number of different samples.
  int64_t sample_count() const;
  int64_t labelled() const { return static_cast<int64_t>(labelled_rows.size()); }
  // Removes all sequences and labels. Capacity is kept.
  void clear();
  // Reserves capacity, scratch for masking included. Building a batch within `bounds` then
  // allocates nothing.
  void reserve(const BatchBounds& bounds);
  // Ends the sequence that begins at `first_row` and whose tokens and segments have been appended:
  // adds its positions, keys, end and sample number. `rows_before` are the rows of the sample's
  // earlier sequences.
  void end_sequence(int64_t first_row, uint64_t sample, int64_t rows_before = 0);
};

}  // namespace onebit::batches
