// Turns a pair of sentence ranges into a sequence: [CLS] A [SEP] B [SEP], or [CLS] A [SEP].
#pragma once

#include <cstdint>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/pair_options.h"
#include "onebit/data/batches/pair_walk.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/philox.h"

namespace onebit::batches {

// A run of tokens in the store.
struct TokenRange {
  uint64_t begin = 0, end = 0;

  int64_t size() const { return static_cast<int64_t>(end - begin); }
};

// How many tokens truncate_pair() takes from each.
struct Dropped {
  int64_t from_a = 0, from_b = 0;
};
Dropped dropped_tokens(int64_t longest, const TokenRange& a, const TokenRange& b);

// Drops tokens until A and B have `longest` tokens together: always from the longer one (B if
// equal), each time from a random end.
void truncate_pair(RandomSequence& random, int64_t longest, TokenRange& a, TokenRange& b);

// Draws a random B if the pair requires one (sentences from a uniformly drawn place of a uniformly
// drawn other document until the target is reached, and the only document has no other), truncates,
// and appends the sequence, unmasked, to `batch`. Its label is 0 if B continues A and 1 if B is
// random. Without next_sentence there is no B, and the label is -1.
void append_pair(const corpus::TokenStore& store, const Pair& pair, const PairWalkOptions& walk,
                 uint64_t sample, RandomSequence& random, Batch& batch);

}  // namespace onebit::batches
