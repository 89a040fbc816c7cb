// A pre-training example as a file holds it, padded and not yet checked, and what reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/file.h"

namespace onebit::samples {

// The arrays carry the names that both formats have for them.
struct PaddedSample {
  std::vector<int64_t> input_ids;    // [S]
  std::vector<int64_t> segment_ids;  // [S]
  // [S], 1 for tokens and 0 for padding; empty where the file has none: [PAD] at the end is padding
  std::vector<int64_t> input_mask;
  std::vector<int64_t> masked_lm_positions;  // [P]
  std::vector<int64_t> masked_lm_ids;        // [P]
  // [P], 1 for a masked word and 0 for padding; empty where the file has none: the first position 0
  // begins the padding, as [CLS] stands there, which is never masked
  std::vector<float> masked_lm_weights;
  std::optional<int64_t> next_sentence;  // 0: B continues A, 1: B is random

  std::string place;  // "part-0.tfrecord: record 3 (byte 2178)", for errors

  // Empty but for capacity.
  void clear();
};

// The examples of a file in its order.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // False at the end. Errors: unreadable, damaged or cut short, a field missing or of another type.
  virtual bool read(PaddedSample& sample) = 0;
  // Bytes consumed so far of the file on the disk; of a reader that does not know them 0.
  virtual uint64_t consumed_bytes() const = 0;
};

}  // namespace onebit::samples
