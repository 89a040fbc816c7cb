// Random access to the pairs of an epoch: a table with one entry every few hundred sentences, built
// in one pass over the sentence offsets (tokens are not read).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "onebit/corpus/token_store.h"
#include "onebit/data/pair_walk.h"
#include "onebit/data/permutation.h"

namespace onebit::data {

class EpochIndex {
 public:
  // Counts the pairs of the epoch on `threads` threads.
  EpochIndex(const corpus::TokenStore& store, const PairWalkOptions& options, int threads);

  uint64_t examples() const { return examples_; }
  const PairWalkOptions& options() const { return options_; }
  // Returns the pair at place `index` in the epoch's order; sets `number` to its place in the text.
  Pair find(const corpus::TokenStore& store, uint64_t index, uint64_t* number) const;
  uint64_t size_bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  struct Entry {
    uint64_t first_number;  // place in the text of the pair that begins here
    uint64_t sentence;      // first sentence of a visit
    uint64_t document;
  };

  void count(const corpus::TokenStore& store, uint64_t document_begin, uint64_t document_end,
             std::vector<Entry>& entries, uint64_t& examples) const;

  PairWalkOptions options_;
  std::vector<Entry> entries_;
  uint64_t examples_ = 0;
  std::optional<Permutation> order_;
};

}  // namespace onebit::data
