// Masked language modelling: chooses the tokens to mask and their replacements.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/pair_options.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/philox.h"

namespace onebit::batches {

// The number of tokens to predict in a sample of `length` with enough candidates:
// min(max_predictions, max(1, round(length * probability))), halves rounded to even.
int64_t prediction_count(int64_t length, double probability, int64_t max_predictions);
// The largest number in a sample of `length` in any update.
int64_t most_predictions(int64_t length, const MaskOptions& options);

// Replaces chosen tokens: 80 % by [MASK], 10 % by a random token, 10 % not at all. [CLS] and [SEP]
// are never chosen. A random token is never a special one nor an [unusedN] entry: the reference
// draws from the whole vocabulary, which teaches the model to expect tokens that no text contains.
class Masker {
 public:
  Masker(const text::Vocabulary& vocabulary, const MaskOptions& options);

  // Masks `probability` of the last sample of `batch`, rows [first_row, batch.rows()), drawing from
  // `random`. Appends masked rows to labelled_rows and their tokens to row_labels. Overwrites
  // `tokens`.
  void mask(RandomSequence& random, double probability, int64_t first_row, Batch& batch) const;

  const MaskOptions& options() const { return options_; }

 private:
  bool is_candidate(int32_t token) const { return token != cls_id_ && token != sep_id_; }
  bool continues_word(int64_t first_row, int64_t row, const Batch& batch) const;
  void choose_tokens(RandomSequence& random, int64_t wanted, int64_t first_row, Batch& batch) const;
  void choose_words(RandomSequence& random, int64_t wanted, int64_t first_row, Batch& batch) const;
  int32_t replacement(RandomSequence& random, int32_t token) const;

  MaskOptions options_;
  int32_t cls_id_, sep_id_, mask_id_;
  std::vector<int32_t> ordinary_;  // candidates for a random token
  // [vocabulary size] 1 for pieces that continue a word ("##"), and that end one ("</w>").
  std::vector<uint8_t> continuation_, ends_word_;
};

}  // namespace onebit::batches
