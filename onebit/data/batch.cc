#include "onebit/data/batch.h"

#include <cstddef>

namespace onebit::data {

void Batch::clear() {
  tokens.clear();
  segments.clear();
  positions.clear();
  sequence_starts.assign(1, 0);
  row_keys.clear();
  masked_rows.clear();
  masked_targets.clear();
  next_sentence.clear();
  samples.clear();
}

void Batch::reserve(const BatchBounds& bounds) {
  const auto rows = static_cast<size_t>(bounds.rows);
  const auto sequences = static_cast<size_t>(bounds.sequences);
  const auto masked = static_cast<size_t>(bounds.masked_rows);
  tokens.reserve(rows);
  segments.reserve(rows);
  positions.reserve(rows);
  row_keys.reserve(rows);
  sequence_starts.reserve(sequences + 1);
  // Masking sorts out its candidates at the end of these two.
  masked_rows.reserve(masked + rows);
  masked_targets.reserve(masked + rows);
  next_sentence.reserve(sequences);
  samples.reserve(sequences);
}

}  // namespace onebit::data
