#include "onebit/exchange/comm/bucket.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::comm {

Range chunk_of(Range bucket, int world_size, int rank) {
  const int64_t blocks = blocks_in(bucket.elements());
  const int64_t share = blocks / world_size, surplus = blocks % world_size;
  const auto place = [&](int64_t first_ranks) {
    const int64_t block = share * first_ranks + std::min(first_ranks, surplus);
    return std::min(bucket.begin + block * kBlockElements, bucket.end);
  };
  return {place(rank), place(rank + 1)};
}

Buckets::Buckets(int64_t elements, int64_t bucket_bytes)
    : elements_(elements),
      bucket_elements_(bucket_bytes / static_cast<int64_t>(sizeof(float)) / kBlockElements *
                       kBlockElements) {
  require(
      elements >= 1,
      "the model has no parameters, so there are no gradients to exchange: declare at least one");
  require(bucket_elements_ >= kBlockElements,
          "a bucket of {} bytes is too small: it must hold at least one block of {} bytes",
          bucket_bytes, kBlockElements * static_cast<int64_t>(sizeof(float)));
  const int64_t blocks = bucket_elements_ / kBlockElements;
  count_ = (blocks_in(elements) + blocks - 1) / blocks;
}

Range Buckets::range(int64_t bucket) const {
  ONEBIT_INVARIANT(bucket >= 0 && bucket < count_);
  const int64_t aligned_end = blocks_in(elements_) * kBlockElements - bucket * bucket_elements_;
  return {std::max<int64_t>(aligned_end - bucket_elements_, 0), std::min(aligned_end, elements_)};
}

int64_t Buckets::bucket_of(int64_t element) const {
  ONEBIT_INVARIANT(element >= 0 && element < elements_);
  return (blocks_in(elements_) * kBlockElements - 1 - element) / bucket_elements_;
}

int64_t Buckets::max_elements() const {
  // The first bucket contains the partial block, so the second one may be longer.
  const int64_t first = range(0).elements();
  return count_ > 1 ? std::max(first, range(1).elements()) : first;
}

int64_t Buckets::owned_offset(int64_t bucket, int world_size, int rank) const {
  const auto owned = [&](int64_t of) { return chunk_of(range(of), world_size, rank).elements(); };
  // All buckets but the first and the last are whole.
  int64_t elements = bucket > 0 ? owned(0) : 0;
  if (bucket > 1) elements += owned(bucket - 1);
  if (bucket > 2) elements += (bucket - 2) * owned(1);
  return elements;
}

int64_t Buckets::owned_elements(int world_size, int rank) const {
  return owned_offset(count_, world_size, rank);
}

}  // namespace onebit::comm
