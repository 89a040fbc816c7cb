#include "onebit/optim/onebit_adam_memory.h"

#include "onebit/compress/bucket_size.h"
#include "onebit/compress/compressed_all_reduce.h"
#include "onebit/compress/wire_layout.h"
#include "onebit/optim/moments.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFloat = sizeof(float);

// VarianceLevel: two numbers a sub-block, five a block.
int64_t level_bytes(int64_t blocks, int world_size) {
  return world_size == 1 ? 0 : kFloat * blocks * (2 * kernels::kSubBlocks + 5);
}

// SignExchange: the bucket on its way and its extras; the residuals and the momentum of owners.
int64_t exchange_bytes(const comm::Buckets& buckets, int world_size) {
  const int64_t largest = buckets.max_elements();
  const int64_t on_the_way =
      largest + compress::CompressedAllReduce::kBucketsInFlight * comm::blocks_in(largest);
  if (world_size == 1) return kFloat * on_the_way;
  return kFloat * (on_the_way + buckets.elements() + 2 * buckets.owned_elements(world_size, 0));
}

}  // namespace

int64_t onebit_adam_state_bytes(const params::Table& table, int world_size, const RunFacts& run) {
  const int64_t elements = table.size_elements(), blocks = comm::blocks_in(elements);
  const auto agreement_bytes = static_cast<int64_t>(sizeof(double) + sizeof(uint8_t)) * blocks;
  const comm::Buckets buckets = compress::sized_buckets(elements, world_size, run.bucket_bytes);
  return Moments::size_bytes_of(table) + compress::sign_bytes(elements) +
         level_bytes(blocks, world_size) + agreement_bytes + exchange_bytes(buckets, world_size);
}

}  // namespace onebit::optim
