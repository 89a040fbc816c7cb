#include "onebit/data/batches/batch.h"

#include <algorithm>
#include <cstddef>

namespace onebit::batches {

void BatchBounds::include(const BatchBounds& other) {
  static_assert(sizeof(BatchBounds) == 6 * sizeof(int64_t), "a new size is to be included here");
  const bool known = (longest > 0 || rows == 0) && (other.longest > 0 || other.rows == 0);
  longest = known ? std::max(longest, other.longest) : 0;
  sequences = std::max(sequences, other.sequences);
  rows = std::max(rows, other.rows);
  masked_rows = std::max(masked_rows, other.masked_rows);
  tagged_rows = std::max(tagged_rows, other.tagged_rows);
  label_values = std::max(label_values, other.label_values);
}

void PackedRows::clear_rows() {
  tokens.clear();
  segments.clear();
  positions.clear();
  sequence_starts.assign(1, 0);
  row_keys.clear();
  samples.clear();
}

void PackedRows::reserve_rows(const BatchBounds& bounds) {
  const auto most_rows = static_cast<size_t>(bounds.rows);
  tokens.reserve(most_rows);
  segments.reserve(most_rows);
  positions.reserve(most_rows);
  row_keys.reserve(most_rows);
  sequence_starts.reserve(static_cast<size_t>(bounds.sequences) + 1);
  samples.reserve(static_cast<size_t>(bounds.sequences));
}

void PackedRows::end_sequence(int64_t first_row, uint64_t sample) {
  for (int64_t position = 0; position < rows() - first_row; ++position) {
    positions.push_back(static_cast<int32_t>(position));
    row_keys.push_back(sample << 16 | static_cast<uint64_t>(position));
  }
  sequence_starts.push_back(static_cast<int32_t>(rows()));
  samples.push_back(sample);
}

void Batch::clear() {
  clear_rows();
  masked_rows.clear();
  masked_targets.clear();
  next_sentence.clear();
}

void Batch::reserve(const BatchBounds& bounds) {
  reserve_rows(bounds);
  // Masking uses the end of these two vectors as scratch for its candidates.
  const auto masked = static_cast<size_t>(bounds.masked_rows + bounds.rows);
  masked_rows.reserve(masked);
  masked_targets.reserve(masked);
  next_sentence.reserve(static_cast<size_t>(bounds.sequences));
}

}  // namespace onebit::batches
