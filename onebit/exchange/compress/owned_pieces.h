// Which rank keeps which elements of a flat buffer in the compressed exchange, on one level or two,
// and the transfer to another number of ranks, other buckets or levels: every element moves to the
// rank that keeps it now, once and unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/nodes.h"

namespace onebit::compress {

// Elements of the flat buffer that a rank keeps, starting at element `place` of its own buffer.
struct OwnedRange {
  Range range;
  int64_t place = 0;

  bool operator==(const OwnedRange&) const = default;
};

// A source is the sender of one gradient: a rank, or on two levels the ranks of a node together,
// each of which exchanges its share of every bucket with the ranks of the same place on other
// nodes. In every source a rank keeps variance and residual of its share, and the momentum of the
// chunks that it owns in the exchange.
struct Ownership {
  comm::Buckets buckets;
  int world_size = 1;
  // On two levels: nodes of equal size, for which compress::two_level_buckets() made the buckets.
  std::optional<comm::Nodes> nodes = {};

  int sources() const { return nodes ? nodes->count() : world_size; }
  int ranks_per_source() const { return nodes ? nodes->ranks_per_node() : 1; }
  int source_of(int rank) const { return nodes ? nodes->node_of(rank) : rank; }
  // The place of a rank within its source, and the inverse.
  int local_of(int rank) const { return nodes ? nodes->local_of(rank) : 0; }
  int rank_of(int source, int local) const {
    return nodes ? nodes->ranks_of(source)[static_cast<size_t>(local)] : source;
  }

  // The buckets of a rank's share: its part of each bucket of the flat buffer.
  comm::Buckets share_buckets(int rank) const;
  // The part of a bucket that belongs to a rank's share.
  Range share_of(int64_t bucket, int rank) const;
  // A rank's share in ascending order, as few ranges as possible.
  std::vector<OwnedRange> shares(int rank) const;
  // The chunks that a rank owns, in the order of buckets, with their elements.
  std::vector<OwnedRange> owned(int rank) const;
  int64_t owned_elements(int rank) const;

  bool operator==(const Ownership&) const = default;
};

// One rank owns all elements in one chunk.
Ownership owned_by_one(int64_t elements);

// The parts of `kept`, in ascending order, that are inside `range`.
std::vector<OwnedRange> within(std::span<const OwnedRange> kept, Range range);

// Elements [from, from + elements) of the buffer of `from_rank` become elements [to, to + elements)
// of the buffer of a present rank.
struct OwnedPiece {
  int from_rank = 0;
  int64_t from = 0, to = 0, elements = 0;

  bool operator==(const OwnedPiece&) const = default;
};

// Where every element that `rank` owns under `now` was kept under `before`, in the order of `to`.
// Both divide the same flat buffer.
std::vector<OwnedPiece> owned_pieces(const Ownership& before, const Ownership& now, int rank);
// The same for the elements `wanted`, in ascending order, from the shares of one source.
std::vector<OwnedPiece> source_pieces(const Ownership& before, int source,
                                      std::span<const OwnedRange> wanted);

}  // namespace onebit::compress
