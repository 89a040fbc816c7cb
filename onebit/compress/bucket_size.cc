#include "onebit/compress/bucket_size.h"

#include <algorithm>

#include "onebit/compress/sign_codec.h"

namespace onebit::compress {

comm::Buckets sized_buckets(int64_t elements, int world_size, int64_t least_bytes) {
  if (world_size == 1) return {elements, least_bytes};
  const int64_t block_bytes = chunk_bytes(kBlockElements);
  const int64_t wanted_blocks = (kMessageBytes + block_bytes - 1) / block_bytes * world_size;
  const int64_t most_blocks = blocks_in(elements) / kLeastBuckets;
  const int64_t value_bytes = kBlockElements * static_cast<int64_t>(sizeof(float));
  return {elements, std::max(least_bytes, std::min(wanted_blocks, most_blocks) * value_bytes)};
}

int64_t message_bytes(const comm::Buckets& buckets, int world_size) {
  const comm::Range whole{0, buckets.max_elements()};
  return chunk_bytes(comm::chunk_of(whole, world_size, 0).elements());
}

}  // namespace onebit::compress
