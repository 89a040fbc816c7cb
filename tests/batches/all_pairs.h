// The pairs of an epoch in the order of the text.
#pragma once

#include <vector>

#include "onebit/data/batches/pair_walk.h"

namespace onebit::batches {

inline std::vector<Pair> all_pairs(const corpus::TokenStore& store,
                                   const PairWalkOptions& options) {
  std::vector<Pair> pairs;
  PairWalk walk(store, options, 0, {});
  while (!walk.done(store.documents())) pairs.push_back(walk.next());
  return pairs;
}

inline bool same(const Pair& a, const Pair& b) {
  return a.document == b.document && a.a_begin == b.a_begin && a.a_end == b.a_end &&
         a.b_end == b.b_end && a.random_next == b.random_next && a.target == b.target;
}

}  // namespace onebit::batches
