// How sequences are cut from documents and which tokens are masked (Devlin et al. 2019,
// sections 3.1 and A.1).
#pragma once

#include <cstdint>

namespace onebit::data {

inline constexpr int64_t kLeastSequenceLength = 8, kMostSequenceLength = 65536;

struct PairOptions {
  int64_t sequence_length = 128;            // [CLS] and every [SEP] included
  double short_sequence_probability = 0.1;  // share of visits with a random shorter target
  // Pairs [CLS] A [SEP] B [SEP], half of the B drawn from elsewhere, to be told apart. Without it a
  // sequence is one run of sentences of a document, [CLS] A [SEP], and nothing but masked words is
  // to be predicted (Liu et al., arXiv 1907.11692, section 4.2: DOC-SENTENCES).
  bool next_sentence = true;

  // The tokens of text that a full sequence has room for.
  int64_t most_text_tokens() const { return sequence_length - (next_sentence ? 3 : 2); }
};

struct MaskOptions {
  double probability = 0.15;     // of the tokens of a sequence, special ones counted
  int64_t max_predictions = 20;  // in a sequence
  bool whole_words = false;      // all pieces of a word or none
};

// Errors name the option and its range.
void check(const PairOptions& options);
void check(const MaskOptions& options);

}  // namespace onebit::data
