// Statistics of a token store: lengths of sentences and documents, and the share of the text that
// its vocabulary does not cover.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "onebit/data/corpus/token_store.h"

namespace onebit::corpus {

// Statistics of at least one length.
struct LengthStatistics {
  double mean = 0;
  uint64_t median = 0;  // the lower of the two middle ones
  uint64_t longest = 0;
  std::vector<uint64_t> histogram;  // at i: lengths in [2^i, 2^(i+1))
};

// Counts lengths. Nearly all lengths are short, and few distinct long ones occur.
class LengthCounter {
 public:
  void add(uint64_t length);
  // Requires at least one length.
  LengthStatistics statistics() const;

 private:
  std::vector<uint64_t> short_ = std::vector<uint64_t>(4096);
  std::map<uint64_t, uint64_t> long_;
  uint64_t count_ = 0, sum_ = 0;
};

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
