// Masked language modelling: which tokens are hidden and what replaces them.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/base/philox.h"
#include "onebit/data/batch.h"
#include "onebit/data/pair_options.h"
#include "onebit/text/vocabulary.h"

namespace onebit::data {

// Tokens to predict in a sequence of `length` with enough candidates:
// min(max_predictions, max(1, round(length * probability))), halves rounded to even.
int64_t prediction_count(int64_t length, const MaskOptions& options);

// Chooses and replaces: 80 % [MASK], 10 % a random token, 10 % unchanged. [CLS] and [SEP] are never
// chosen. A random token is never a special one nor an [unusedN] entry: the reference draws from
// the whole list, which teaches the model to expect tokens that no text holds.
class Masker {
 public:
  Masker(const text::Vocabulary& vocabulary, const MaskOptions& options);

  // Masks the last sequence of `batch`, rows [first_row, batch.rows()), drawing from `random`.
  // Appends to masked_rows and masked_targets and overwrites tokens.
  void mask(RandomSequence& random, int64_t first_row, Batch& batch) const;

  const MaskOptions& options() const { return options_; }

 private:
  bool is_candidate(int32_t token) const { return token != cls_id_ && token != sep_id_; }
  bool continues_word(int64_t first_row, int64_t row, const Batch& batch) const;
  void choose_tokens(RandomSequence& random, int64_t first_row, Batch& batch) const;
  void choose_words(RandomSequence& random, int64_t first_row, Batch& batch) const;
  int32_t replacement(RandomSequence& random, int32_t token) const;

  MaskOptions options_;
  int32_t cls_id_, sep_id_, mask_id_;
  std::vector<int32_t> ordinary_;      // what a random token is drawn from
  std::vector<uint8_t> continuation_;  // [vocabulary size] 1 for "##" pieces
};

}  // namespace onebit::data
