#include "onebit/exchange/compress/bucket_size.h"

#include <algorithm>

#include "onebit/exchange/compress/sign_codec.h"

namespace onebit::compress {

comm::Buckets sized_buckets(int64_t elements, int world_size, int64_t least_bytes) {
  if (world_size == 1) return {elements, least_bytes};
  const int64_t block_bytes = chunk_bytes(kBlockElements);
  const int64_t wanted_blocks = (kMessageBytes + block_bytes - 1) / block_bytes * world_size;
  const int64_t most_blocks = blocks_in(elements) / kMinBuckets;
  const int64_t value_bytes = kBlockElements * static_cast<int64_t>(sizeof(float));
  return {elements, std::max(least_bytes, std::min(wanted_blocks, most_blocks) * value_bytes)};
}

comm::Buckets two_level_buckets(int64_t elements, int nodes, int ranks_per_node,
                                int64_t least_bytes) {
  constexpr int64_t kBlockBytes = kBlockElements * static_cast<int64_t>(sizeof(float));
  const int64_t blocks = blocks_in(elements), ranks = ranks_per_node;
  require(blocks >= ranks,
          "{} parameters are {} blocks, which cannot be divided among the {} ranks of a node: use "
          "one level, or fewer ranks per node",
          elements, blocks, ranks);
  const int64_t share = std::min(elements, (blocks + ranks - 1) / ranks * kBlockElements);
  const comm::Buckets parts =
      sized_buckets(share, nodes, std::max(least_bytes / ranks, kBlockBytes));
  int64_t part_blocks = parts.bucket_bytes() / kBlockBytes;
  // The last bucket has the remainder, which is divided as well.
  const auto leaves_some_without = [&] {
    const int64_t rest = blocks % (ranks * part_blocks);
    return rest != 0 && rest < ranks;
  };
  while (leaves_some_without()) ++part_blocks;
  return {elements, ranks * part_blocks * kBlockBytes};
}

int64_t message_bytes(const comm::Buckets& buckets, int world_size) {
  const Range whole{0, buckets.max_elements()};
  return chunk_bytes(comm::chunk_of(whole, world_size, 0).elements());
}

}  // namespace onebit::compress
