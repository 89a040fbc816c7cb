// What a token store consists of: lengths of sentences and documents, and how much of the text its
// vocabulary does not know.
#pragma once

#include <cstdint>

#include "onebit/corpus/length_counter.h"
#include "onebit/corpus/token_store.h"

namespace onebit::corpus {

struct StoreStatistics {
  uint64_t unknown_tokens = 0;  // [UNK]: words that cannot be put together from pieces
  LengthStatistics sentence_tokens, document_tokens, document_sentences;
};

// Reads all of the store. Error: an id outside the vocabulary.
StoreStatistics statistics_of(const TokenStore& store);

}  // namespace onebit::corpus
