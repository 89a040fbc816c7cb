// Statistics of a token store: lengths of sentences and documents, and the share of the text that
// its vocabulary does not cover.
#pragma once

#include <cstdint>

#include "onebit/data/corpus/length_counter.h"
#include "onebit/data/corpus/token_store.h"

namespace onebit::corpus {

// A sentence of more tokens does not fit into the sequences of most BERTs: pre-training reads it in
// pieces.
inline constexpr uint64_t kLongSentenceTokens = 512;
// The tokens of a sentence if it is such a long one, else 0.
inline uint64_t long_tokens(uint64_t tokens) {
  return tokens > kLongSentenceTokens ? tokens : 0;
}

struct StoreStatistics {
  uint64_t unknown_tokens = 0;        // [UNK]: words that pieces of the vocabulary cannot form
  uint64_t long_sentence_tokens = 0;  // in sentences of more than kLongSentenceTokens
  LengthStatistics sentence_tokens, document_tokens, document_sentences;
};

// Reads the whole store. Error: an id outside the vocabulary.
StoreStatistics statistics_of(const TokenStore& store);

}  // namespace onebit::corpus
