// A pre-training example with the pair and masks that its writer drew, without padding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/file.h"

namespace onebit::samples {

// The longest sequence, and so the largest position + 1.
inline constexpr int64_t kMaxTokens = 65536;
inline constexpr int32_t kNoLabel = -1;

struct Sample {
  std::vector<int32_t> tokens;            // [T] [CLS] A [SEP] or [CLS] A [SEP] B [SEP], masked
  int32_t first_part = 0;                 // number of tokens in segment 0, T without B
  std::vector<int32_t> masked_positions;  // [M] ascending
  std::vector<int32_t> masked_ids;        // [M] the original tokens
  int32_t next_sentence = kNoLabel;       // 0: B continues A, 1: B is random
};

// A pre-training example as stored in a file, padded and unchecked. The arrays have the names that
// both file formats use.
struct PaddedSample {
  std::vector<int64_t> input_ids;    // [S]
  std::vector<int64_t> segment_ids;  // [S]
  // [S], 1 for tokens and 0 for padding. Empty if the file has none: [PAD] at the end is padding
  std::vector<int64_t> input_mask;
  std::vector<int64_t> masked_lm_positions;  // [P]
  std::vector<int64_t> masked_lm_ids;        // [P]
  // [P], 1 for a masked word and 0 for padding. Empty if the file has none: the first position 0
  // begins the padding, since position 0 is [CLS], which is never masked
  std::vector<float> masked_lm_weights;
  std::optional<int64_t> next_sentence;  // 0: B continues A, 1: B is random

  std::string place;  // "part-0.tfrecord: record 3 (byte 2178)", for errors

  // Clears all members. Capacity is kept.
  void clear();
};

// Converts the contents of files to samples and refuses implausible ones.
class SampleChecker {
 public:
  // Errors name the vocabulary as `vocabulary_place`.
  SampleChecker(const text::Vocabulary& vocabulary, std::string vocabulary_place);

  // False if no word is masked, so that there is nothing to predict: the sample is left out, and
  // counted. Errors, with the place of the sample: arrays of different lengths, values out of
  // range, ids of another vocabulary.
  bool take(const PaddedSample& padded, Sample& sample);
  int64_t without_masks() const { return without_masks_; }
  // The place of the first of them.
  const std::string& first_without_masks() const { return first_without_masks_; }
  // Must be called at the end. Error: [MASK] replaced so few of all masked words that the files
  // must use the [MASK] of another vocabulary.
  void finish() const;

 private:
  int64_t length_of(const PaddedSample& padded) const;
  void take_tokens(const PaddedSample& padded, int64_t length, Sample& sample) const;
  void take_segments(const PaddedSample& padded, Sample& sample) const;
  void take_masked(const PaddedSample& padded, Sample& sample);

  const text::Vocabulary& vocabulary_;
  std::string vocabulary_place_;
  uint64_t masked_ = 0, mask_tokens_ = 0;
  int64_t without_masks_ = 0;
  std::string first_without_masks_;
  std::vector<std::pair<int32_t, int32_t>> scratch_;  // (position, id)
};

// Reads the examples of a file in order.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // False at the end. Errors: unreadable, damaged or truncated, a field missing or of another type.
  virtual bool read(PaddedSample& sample) = 0;
  // Bytes of the file on disk consumed so far, or 0 if the reader does not know.
  virtual uint64_t consumed_bytes() const = 0;
};

}  // namespace onebit::samples
