#include "onebit/compress/owned_pieces.h"

#include <algorithm>

#include "onebit/base/error.h"

namespace onebit::compress {
namespace {

void add_piece(std::vector<OwnedPiece>& pieces, const OwnedPiece& piece) {
  if (!pieces.empty()) {
    OwnedPiece& last = pieces.back();
    if (last.from_rank == piece.from_rank && last.from + last.elements == piece.from) {
      last.elements += piece.elements;
      return;
    }
  }
  pieces.push_back(piece);
}

// Returns the pieces of a range whose first element belongs at offset `to` now.
void add_range(std::vector<OwnedPiece>& pieces, const Ownership& before, comm::Range range,
               int64_t to) {
  // Buckets are numbered from the end.
  const int64_t last = before.buckets.bucket_of(range.begin);
  const int64_t first = before.buckets.bucket_of(range.end - 1);
  for (int64_t bucket = last; bucket >= first; --bucket) {
    const comm::Range whole = before.buckets.range(bucket);
    for (int rank = 0; rank < before.world_size; ++rank) {
      const comm::Range chunk = comm::chunk_of(whole, before.world_size, rank);
      const comm::Range part{std::max(chunk.begin, range.begin), std::min(chunk.end, range.end)};
      if (part.begin >= part.end) continue;
      const int64_t kept_at = before.buckets.owned_offset(bucket, before.world_size, rank);
      add_piece(pieces, {.from_rank = rank,
                         .from = kept_at + part.begin - chunk.begin,
                         .to = to + part.begin - range.begin,
                         .elements = part.elements()});
    }
  }
}

}  // namespace

Ownership owned_by_one(int64_t elements) {
  const int64_t block_bytes = comm::kBlockElements * static_cast<int64_t>(sizeof(float));
  return {.buckets = comm::Buckets(elements, comm::blocks_in(elements) * block_bytes),
          .world_size = 1};
}

std::vector<OwnedPiece> owned_pieces(const Ownership& before, const Ownership& now, int rank) {
  ONEBIT_INVARIANT(before.buckets.elements() == now.buckets.elements());
  std::vector<OwnedPiece> pieces;
  int64_t to = 0;
  for (int64_t bucket = 0; bucket < now.buckets.count(); ++bucket) {
    const comm::Range chunk = comm::chunk_of(now.buckets.range(bucket), now.world_size, rank);
    if (chunk.elements() == 0) continue;
    add_range(pieces, before, chunk, to);
    to += chunk.elements();
  }
  return pieces;
}

}  // namespace onebit::compress
