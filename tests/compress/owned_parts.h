// Maps a flat buffer to the parts that its owners keep, and back, from the layout alone.
#pragma once

#include <span>
#include <vector>

#include "onebit/exchange/compress/owned_pieces.h"

namespace onebit::compress::trials {

// The chunk of a bucket that a rank owns. On two levels it is a chunk of the rank's part.
inline Range owned_chunk(const Ownership& cut, int64_t bucket, int rank) {
  const Range whole = cut.buckets.range(bucket);
  if (!cut.nodes) return comm::chunk_of(whole, cut.world_size, rank);
  const comm::Nodes& nodes = *cut.nodes;
  const Range part = comm::chunk_of(whole, nodes.ranks_per_node(), nodes.local_of(rank));
  int before = 0;  // lower ranks with the same part
  for (int other = 0; other < rank; ++other) {
    before += nodes.local_of(other) == nodes.local_of(rank) ? 1 : 0;
  }
  return comm::chunk_of(part, nodes.count(), before);
}

// Returns for each rank its chunks in the order of buckets.
inline std::vector<std::vector<float>> owned_parts(const Ownership& cut,
                                                   std::span<const float> flat) {
  std::vector<std::vector<float>> parts(static_cast<size_t>(cut.world_size));
  for (int rank = 0; rank < cut.world_size; ++rank) {
    auto& part = parts[static_cast<size_t>(rank)];
    for (int64_t bucket = 0; bucket < cut.buckets.count(); ++bucket) {
      const Range chunk = owned_chunk(cut, bucket, rank);
      part.insert(part.end(), flat.begin() + chunk.begin, flat.begin() + chunk.end);
    }
  }
  return parts;
}

// Copies the part that `rank` keeps to its places in `flat`.
inline void put_owned_part(const Ownership& cut, int rank, std::span<const float> part,
                           std::span<float> flat) {
  auto next = part.begin();
  for (int64_t bucket = 0; bucket < cut.buckets.count(); ++bucket) {
    const Range chunk = owned_chunk(cut, bucket, rank);
    std::copy_n(next, chunk.elements(), flat.begin() + chunk.begin);
    next += chunk.elements();
  }
}

}  // namespace onebit::compress::trials
