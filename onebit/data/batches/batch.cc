#include "onebit/data/batches/batch.h"

#include <algorithm>
#include <cstddef>

namespace onebit::batches {

void BatchBounds::include(const BatchBounds& other) {
  static_assert(sizeof(BatchBounds) == 5 * sizeof(int64_t), "a new size is to be included here");
  const bool known = (longest > 0 || rows == 0) && (other.longest > 0 || other.rows == 0);
  longest = known ? std::max(longest, other.longest) : 0;
  sequences = std::max(sequences, other.sequences);
  rows = std::max(rows, other.rows);
  labelled_rows = std::max(labelled_rows, other.labelled_rows);
  sequence_values = std::max(sequence_values, other.sequence_values);
}

void Batch::clear() {
  tokens.clear();
  segments.clear();
  positions.clear();
  sequence_starts.assign(1, 0);
  row_keys.clear();
  samples.clear();
  labelled_rows.clear();
  row_labels.clear();
  sequence_labels.clear();
  sequence_values.clear();
}

void Batch::reserve(const BatchBounds& bounds) {
  const auto most_rows = static_cast<size_t>(bounds.rows);
  tokens.reserve(most_rows);
  segments.reserve(most_rows);
  positions.reserve(most_rows);
  row_keys.reserve(most_rows);
  sequence_starts.reserve(static_cast<size_t>(bounds.sequences) + 1);
  samples.reserve(static_cast<size_t>(bounds.sequences));
  // Masking uses the end of these two vectors as scratch for its candidates.
  const auto most_labelled = static_cast<size_t>(bounds.labelled_rows + bounds.rows);
  labelled_rows.reserve(most_labelled);
  row_labels.reserve(most_labelled);
  sequence_labels.reserve(static_cast<size_t>(kMostSequenceLabels * bounds.sequences));
  sequence_values.reserve(static_cast<size_t>(bounds.sequence_values));
}

int64_t Batch::sample_count() const {
  int64_t count = 0;
  for (size_t i = 0; i < samples.size(); ++i) count += i == 0 || samples[i] != samples[i - 1];
  return count;
}

void Batch::end_sequence(int64_t first_row, uint64_t sample, int64_t rows_before) {
  for (int64_t position = 0; position < rows() - first_row; ++position) {
    positions.push_back(static_cast<int32_t>(position));
    row_keys.push_back(sample << 16 | static_cast<uint64_t>(rows_before + position));
  }
  sequence_starts.push_back(static_cast<int32_t>(rows()));
  samples.push_back(sample);
}

}  // namespace onebit::batches
