// Moves what owners keep for their chunks (momentum, residual) to another number of ranks or other
// buckets: every element goes to the rank that owns it now, once and unchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/comm/bucket.h"

namespace onebit::compress {

// Who owns which elements of a flat buffer. A rank keeps the chunks that it owns one after the
// other, in the order of buckets.
struct Ownership {
  comm::Buckets buckets;
  int world_size = 1;
};

// All elements in one chunk of one rank.
Ownership owned_by_one(int64_t elements);

// Elements [from, from + elements) of the buffer of `from_rank` are elements [to, to + elements) of
// the buffer of a rank now.
struct OwnedPiece {
  int from_rank = 0;
  int64_t from = 0, to = 0, elements = 0;

  bool operator==(const OwnedPiece&) const = default;
};

// Where every element that `rank` owns under `now` was under `before`, in the order of `to`. Both
// divide the same flat buffer.
std::vector<OwnedPiece> owned_pieces(const Ownership& before, const Ownership& now, int rank);

}  // namespace onebit::compress
