// The data of a training step: real tokens with sequence boundaries and no padding.
#pragma once

#include <cstdint>
#include <vector>

namespace onebit::batches {

// The largest sizes of a batch; buffers reserved for them never grow.
struct BatchBounds {
  int64_t sequences = 0;
  int64_t rows = 0;
  int64_t longest = 0;  // tokens of a sequence; 0: not known
  int64_t masked_rows = 0;
  int64_t tagged_rows = 0;
  int64_t label_values = 0;  // f32 numbers, of all sequences together

  // Grows each size to that of `other` where that is larger; `longest` is known afterwards if it is
  // known in both.
  void include(const BatchBounds& other);
};

// B sequences with T tokens in total. All vectors are in host memory.
struct PackedRows {
  std::vector<int32_t> tokens;           // [T] input of the model
  std::vector<int32_t> segments;         // [T] 0 for [CLS] A [SEP], 1 for B [SEP]
  std::vector<int32_t> positions;        // [T] from 0 in each sequence
  std::vector<int32_t> sequence_starts;  // [B + 1] rows; the last entry is T
  // [T] sample << 16 | position: the key of dropout masks, which then depend neither on the number
  // of ranks nor on the micro-batch.
  std::vector<uint64_t> row_keys;
  std::vector<uint64_t> samples;  // [B] global sample numbers

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t sequences() const {
    return sequence_starts.empty() ? 0 : static_cast<int64_t>(sequence_starts.size()) - 1;
  }
  // Removes all sequences; capacity is kept.
  void clear_rows();
  void reserve_rows(const BatchBounds& bounds);
  // Ends the sequence that begins at `first_row` and whose tokens and segments have been appended:
  // adds its positions, keys, end and sample number.
  void end_sequence(int64_t first_row, uint64_t sample);
};

// A batch for pre-training with M masked tokens.
struct Batch : PackedRows {
  std::vector<int32_t> masked_rows;     // [M] rows whose token is to be predicted, ascending
  std::vector<int32_t> masked_targets;  // [M] the tokens they replace
  std::vector<int32_t> next_sentence;   // [B] 0: B continues A, 1: B is random, -1: there is no B

  int64_t masked() const { return static_cast<int64_t>(masked_rows.size()); }
  void clear();
  // Reserves capacity, scratch for masking included; building a batch within `bounds` then
  // allocates nothing.
  void reserve(const BatchBounds& bounds);
};

}  // namespace onebit::batches
