// Options for cutting sequences from documents and masking tokens (Devlin et al. 2019, sections 3.1
// and A.1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "onebit/data/text/vocabulary.h"

namespace onebit::batches {

inline constexpr int64_t kMinSequenceLength = 8, kMaxSequenceLength = 65536;

struct PairOptions {
  int64_t sequence_length = 128;            // [CLS] and every [SEP] included
  double short_sequence_probability = 0.1;  // share of visits with a shorter random target
  // Sequences are pairs [CLS] A [SEP] B [SEP], half of them with a random B, which the model has to
  // recognise. Otherwise a sequence is one run of sentences of a document, [CLS] A [SEP], and only
  // masked words are predicted (Liu et al., arXiv 1907.11692, section 4.2: DOC-SENTENCES).
  bool next_sentence = true;
  // A sample is as many sequences as fit into sequence_length tokens, of whole sentences of one
  // document each, and not one sequence. Only without next_sentence.
  bool packing = false;
  // How the store's tokenizer writes a pair.
  text::PairTemplate form = {};

  // The most sequences of a sample: with packing each has a token beside [CLS] and [SEP].
  int64_t most_sequences() const { return packing ? sequence_length / 3 : 1; }
  // The number of text tokens in a full sequence.
  int64_t most_text_tokens() const {
    return sequence_length - (next_sentence ? 2 + form.separators : 2);
  }
};

struct MaskOptions {
  double probability = 0.15;     // share of the sample's tokens, special ones included
  int64_t max_predictions = 20;  // per sample
  bool whole_words = false;      // mask all pieces of a word or none
  // The share in later updates of a run, which are counted from 0. Held-out data keep the first
  // share, so that their figures can be compared.
  std::optional<double> final_probability;      // reached linearly after `updates`
  int64_t updates = 0;                          // of the run
  std::map<int64_t, double> probability_since;  // update -> the share from this one on

  double probability_at(int64_t update) const;
  double largest_probability() const;
};

// Errors name the option and its range.
void check(const PairOptions& options);
void check(const MaskOptions& options);

}  // namespace onebit::batches
