// A pre-training example as stored in a file, padded and unchecked, and the interface of readers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::samples {

// The arrays have the names that both file formats use.
struct PaddedSample {
  std::vector<int64_t> input_ids;    // [S]
  std::vector<int64_t> segment_ids;  // [S]
  // [S], 1 for tokens and 0 for padding; empty if the file has none: [PAD] at the end is padding
  std::vector<int64_t> input_mask;
  std::vector<int64_t> masked_lm_positions;  // [P]
  std::vector<int64_t> masked_lm_ids;        // [P]
  // [P], 1 for a masked word and 0 for padding; empty if the file has none: the first position 0
  // begins the padding, since position 0 is [CLS], which is never masked
  std::vector<float> masked_lm_weights;
  std::optional<int64_t> next_sentence;  // 0: B continues A, 1: B is random

  std::string place;  // "part-0.tfrecord: record 3 (byte 2178)", for errors

  // Clears all members; capacity is kept.
  void clear();
};

// Reads the examples of a file in order.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // False at the end. Errors: unreadable, damaged or truncated, a field missing or of another type.
  virtual bool read(PaddedSample& sample) = 0;
  // Bytes of the file on disk consumed so far; 0 if the reader does not know.
  virtual uint64_t consumed_bytes() const = 0;
};

}  // namespace onebit::samples
