// Small micro-batches on the host for the tests of the models.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/math/model/batch.h"
#include "onebit/math/model/config.h"

namespace onebit::model {

struct TinyBatch {
  std::vector<int32_t> tokens, segments, positions, starts{0};
  std::vector<uint64_t> row_keys;
  std::vector<int32_t> masked_rows, masked_targets, next_sentence;
  std::vector<int32_t> span_starts, span_ends, classes;
  std::vector<int32_t> tagged_rows, tags;
  std::vector<float> label_values;  // [sequences, 3]

  int64_t sequences() const { return static_cast<int64_t>(starts.size()) - 1; }
  BatchLimits limits() const;
  // Sequences [begin, end) with their labels and row keys.
  TinyBatch part(int64_t begin, int64_t end) const;
  // Views with the labels of one kind of model, valid while the batch lives: masked words with the
  // next sentence, spans, classes, label_values, tags.
  DeviceBatch view() const;
  DeviceBatch view_of_spans();
  DeviceBatch view_of_classes() const;
  DeviceBatch view_of_values() const;
  DeviceBatch view_of_tags() const;

 private:
  DeviceBatch view_of_rows() const;

  std::vector<int32_t> spans_;  // [2, sequences], made by view_of_spans()
};

// Random tokens and labels, the same for the same arguments. Row keys depend on `seed` too.
TinyBatch random_batch(const EncoderConfig& config, const std::vector<int64_t>& lengths,
                       uint64_t seed);

}  // namespace onebit::model
