#include "onebit/exchange/compress/owned_pieces.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::compress {
namespace {

// A range and the rank that keeps it.
struct Kept {
  OwnedRange owned;
  int rank = 0;
};

bool ends_before(const OwnedRange& one, int64_t at) {
  return one.range.end <= at;
}

void add_piece(std::vector<OwnedPiece>& pieces, const OwnedPiece& piece) {
  if (!pieces.empty()) {
    OwnedPiece& last = pieces.back();
    if (last.from_rank == piece.from_rank && last.from + last.elements == piece.from &&
        last.to + last.elements == piece.to) {
      last.elements += piece.elements;
      return;
    }
  }
  pieces.push_back(piece);
}

// `kept`: the whole flat buffer, in ascending order.
std::vector<OwnedPiece> pieces_of(const std::vector<Kept>& kept,
                                  std::span<const OwnedRange> wanted) {
  std::vector<OwnedPiece> pieces;
  for (const auto& [range, place] : wanted) {
    auto from =
        std::lower_bound(kept.begin(), kept.end(), range.begin,
                         [](const Kept& one, int64_t at) { return ends_before(one.owned, at); });
    for (int64_t at = range.begin; at < range.end; ++from) {
      ONEBIT_INVARIANT(from != kept.end() && from->owned.range.begin <= at);
      const int64_t end = std::min(from->owned.range.end, range.end);
      add_piece(pieces, {.from_rank = from->rank,
                         .from = from->owned.place + at - from->owned.range.begin,
                         .to = place + at - range.begin,
                         .elements = end - at});
      at = end;
    }
  }
  return pieces;
}

// The number of a rank among the ranks with which it exchanges: all ranks, or the ranks of the same
// place on other nodes. Both are in rank order, which the order of nodes need not follow.
int place_across(const Ownership& ownership, int rank) {
  if (!ownership.nodes) return rank;
  int place = 0;
  for (int other = 0; other < rank; ++other) {
    if (ownership.local_of(other) == ownership.local_of(rank)) ++place;
  }
  return place;
}

void sort_by_place(std::vector<Kept>& kept) {
  std::sort(kept.begin(), kept.end(),
            [](const Kept& a, const Kept& b) { return a.owned.range.begin < b.owned.range.begin; });
}

}  // namespace

comm::Buckets Ownership::share_buckets(int rank) const {
  if (!nodes) return buckets;
  const int ranks = ranks_per_source();
  ONEBIT_INVARIANT(nodes->ranks() == world_size && nodes->even());
  return {buckets.owned_elements(ranks, local_of(rank)), buckets.bucket_bytes() / ranks};
}

Range Ownership::share_of(int64_t bucket, int rank) const {
  return comm::chunk_of(buckets.range(bucket), ranks_per_source(), local_of(rank));
}

std::vector<OwnedRange> Ownership::shares(int rank) const {
  std::vector<OwnedRange> shares;
  int64_t place = 0;
  for (int64_t bucket = buckets.count() - 1; bucket >= 0; --bucket) {
    const Range part = share_of(bucket, rank);
    if (!shares.empty() && shares.back().range.end == part.begin) {
      shares.back().range.end = part.end;
    } else {
      shares.push_back({.range = part, .place = place});
    }
    place += part.elements();
  }
  return shares;
}

std::vector<OwnedRange> Ownership::owned(int rank) const {
  const comm::Buckets parts = share_buckets(rank);
  ONEBIT_INVARIANT(parts.count() == buckets.count());
  const int self = place_across(*this, rank);
  std::vector<OwnedRange> owned;
  int64_t place = 0;
  for (int64_t bucket = 0; bucket < parts.count(); ++bucket) {
    const Range part = parts.range(bucket);
    const Range chunk = comm::chunk_of(part, sources(), self);
    if (chunk.elements() == 0) continue;
    const int64_t shift = share_of(bucket, rank).begin - part.begin;
    owned.push_back({.range = {chunk.begin + shift, chunk.end + shift}, .place = place});
    place += chunk.elements();
  }
  return owned;
}

int64_t Ownership::owned_elements(int rank) const {
  return share_buckets(rank).owned_elements(sources(), place_across(*this, rank));
}

Ownership owned_by_one(int64_t elements) {
  const int64_t block_bytes = comm::kBlockElements * static_cast<int64_t>(sizeof(float));
  return {.buckets = comm::Buckets(elements, comm::blocks_in(elements) * block_bytes),
          .world_size = 1};
}

std::vector<OwnedRange> within(std::span<const OwnedRange> kept, Range range) {
  std::vector<OwnedRange> found;
  for (auto one = std::lower_bound(kept.begin(), kept.end(), range.begin, ends_before);
       one != kept.end() && one->range.begin < range.end; ++one) {
    const Range part{std::max(one->range.begin, range.begin), std::min(one->range.end, range.end)};
    found.push_back({.range = part, .place = one->place + part.begin - one->range.begin});
  }
  return found;
}

std::vector<OwnedPiece> owned_pieces(const Ownership& before, const Ownership& now, int rank) {
  ONEBIT_INVARIANT(before.buckets.elements() == now.buckets.elements());
  std::vector<Kept> kept;
  for (int from = 0; from < before.world_size; ++from) {
    for (const OwnedRange& owned : before.owned(from)) kept.push_back({owned, from});
  }
  sort_by_place(kept);
  return pieces_of(kept, now.owned(rank));
}

std::vector<OwnedPiece> source_pieces(const Ownership& before, int source,
                                      std::span<const OwnedRange> wanted) {
  std::vector<Kept> kept;
  for (int local = 0; local < before.ranks_per_source(); ++local) {
    const int from = before.rank_of(source, local);
    for (const OwnedRange& share : before.shares(from)) kept.push_back({share, from});
  }
  sort_by_place(kept);
  return pieces_of(kept, wanted);
}

}  // namespace onebit::compress
