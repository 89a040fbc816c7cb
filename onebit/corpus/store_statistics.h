// Statistics of a token store: lengths of sentences and documents, and the share of the text that
// its vocabulary does not cover.
#pragma once

#include <cstdint>

#include "onebit/corpus/length_counter.h"
#include "onebit/corpus/token_store.h"

namespace onebit::corpus {

struct StoreStatistics {
  uint64_t unknown_tokens = 0;  // [UNK]: words that pieces of the vocabulary cannot form
  LengthStatistics sentence_tokens, document_tokens, document_sentences;
};

// Reads the whole store. Error: an id outside the vocabulary.
StoreStatistics statistics_of(const TokenStore& store);

}  // namespace onebit::corpus
