// What the owners keep of a flat buffer, and back: from the layout alone.
#pragma once

#include <span>
#include <vector>

#include "onebit/compress/owned_pieces.h"

namespace onebit::compress::trials {

// On two levels the chunk of a rank's part of the bucket.
inline Range owned_chunk(const Ownership& cut, int64_t bucket, int rank) {
  const Range whole = cut.buckets.range(bucket);
  if (!cut.nodes) return comm::chunk_of(whole, cut.world_size, rank);
  const comm::Nodes& nodes = *cut.nodes;
  const Range part = comm::chunk_of(whole, nodes.ranks_per_node(), nodes.local_of(rank));
  int before = 0;  // of those that have this part
  for (int other = 0; other < rank; ++other) {
    before += nodes.local_of(other) == nodes.local_of(rank) ? 1 : 0;
  }
  return comm::chunk_of(part, nodes.count(), before);
}

// Of each rank: its chunks in the order of buckets.
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

// Puts what `rank` keeps at its places in `flat`.
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
