// What a token store consists of: lengths of sentences and documents, and how much of the text its
// vocabulary does not know.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/corpus/token_store.h"

namespace onebit::corpus {

// Lengths of which there is at least one.
struct LengthStatistics {
  double mean = 0;
  uint64_t median = 0;  // the lower of two
  uint64_t longest = 0;
  std::vector<uint64_t> histogram;  // at i: those in [2^i, 2^(i+1))
};

struct StoreStatistics {
  uint64_t unknown_tokens = 0;  // [UNK]: words that cannot be put together from pieces
  LengthStatistics sentence_tokens, document_tokens, document_sentences;
};

// Reads all of the store. Error: an id outside the vocabulary.
StoreStatistics statistics_of(const TokenStore& store);

}  // namespace onebit::corpus
