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

ReadyBuckets::ReadyBuckets(const Buckets& buckets) : buckets_(buckets) {
  restart();
}

void ReadyBuckets::restart() {
  missing_elements_.clear();
  for (int64_t i = 0; i < buckets_.count(); ++i) {
    missing_elements_.push_back(buckets_.range(i).elements());
  }
  next_ = 0;
}

std::vector<int64_t> ReadyBuckets::ready(Range range) {
  require(range.begin >= 0 && range.begin <= range.end && range.end <= buckets_.elements(),
          "elements [{}, {}) became ready, but the buffer has only {}", range.begin, range.end,
          buckets_.elements());
  if (range.elements() == 0) return {};
  const int64_t first = buckets_.bucket_of(range.end - 1), last = buckets_.bucket_of(range.begin);
  for (int64_t bucket = first; bucket <= last; ++bucket) {
    const Range whole = buckets_.range(bucket);
    int64_t& missing = missing_elements_[static_cast<size_t>(bucket)];
    missing -= std::min(whole.end, range.end) - std::max(whole.begin, range.begin);
    require(missing >= 0, "elements of [{}, {}) became ready twice in one backward pass",
            range.begin, range.end);
  }
  std::vector<int64_t> sendable;
  while (next_ < buckets_.count() && missing_elements_[static_cast<size_t>(next_)] == 0) {
    sendable.push_back(next_++);
  }
  return sendable;
}

void ReadyBuckets::require_all() const {
  if (all_ready()) return;
  const Range waiting = buckets_.range(next_);
  fail(
      "gradients_ready was not called for the whole gradient: {} elements of [{}, {}) are missing; "
      "call it with every range, from the end of the buffer to its beginning",
      missing_elements_[static_cast<size_t>(next_)], waiting.begin, waiting.end);
}

}  // namespace onebit::comm
