// Random access to the pairs of an epoch: a table with one entry every few hundred sentences, built
// in one pass over the sentence offsets (tokens are not read). The pass also finds what the epoch
// leaves out, and whether its next-sentence labels can be learned.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "onebit/data/batches/example_source.h"
#include "onebit/data/batches/pair_walk.h"
#include "onebit/data/batches/permutation.h"
#include "onebit/data/corpus/token_store.h"

namespace onebit::batches {

class EpochIndex {
 public:
  // Counts the pairs of the epoch on `threads` threads.
  EpochIndex(const corpus::TokenStore& store, const PairWalkOptions& options, int threads);

  uint64_t examples() const { return figures_.examples; }
  const EpochFigures& figures() const { return figures_; }
  const PairWalkOptions& options() const { return options_; }
  // Returns the pair at place `index` in the epoch's order; sets `number` to its place in the text.
  Pair find(const corpus::TokenStore& store, uint64_t index, uint64_t* number) const;
  uint64_t size_bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  struct Entry {
    uint64_t first_number;  // place in the text of the pair that begins here
    TextPlace place;        // where a visit begins
    uint64_t document;
  };

  void count(const corpus::TokenStore& store, uint64_t document_begin, uint64_t document_end,
             std::vector<Entry>& entries, EpochFigures& figures) const;

  PairWalkOptions options_;
  std::vector<Entry> entries_;
  EpochFigures figures_;
  std::optional<Permutation> order_;
};

}  // namespace onebit::batches
