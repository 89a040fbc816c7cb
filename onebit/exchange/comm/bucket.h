// How a flat buffer is cut for the exchange: into buckets, a bucket into one chunk per rank, a
// chunk into blocks. All sizes are in elements of the flat buffer.
#pragma once

#include <cstdint>

#include "onebit/math/kernels/blocks.h"
#include "onebit/math/tensor/view.h"

namespace onebit::comm {

// Cuts are at multiples of kBlockElements, except the end of the buffer. A block has one header.
using kernels::blocks_in;
using kernels::kBlockElements;

// The part of a bucket that `rank` of `world_size` owns: whole blocks, divided as evenly as
// possible, the larger parts to the lower ranks. It is empty for ranks beyond the last block.
Range chunk_of(Range bucket, int world_size, int rank);

// Buckets of about bucket_bytes of f32 each, numbered from the END of the buffer, the order in
// which a backward pass completes gradients. The last bucket (at the start of the buffer) has the
// remainder. Every element is in exactly one bucket.
class Buckets {
 public:
  // Error: no elements, or bucket_bytes below one block.
  Buckets(int64_t elements, int64_t bucket_bytes);

  int64_t elements() const { return elements_; }
  int64_t count() const { return count_; }
  // The size of a full bucket in bytes of f32, a whole number of blocks. Buckets constructed with
  // this size are identical.
  int64_t bucket_bytes() const { return bucket_elements_ * static_cast<int64_t>(sizeof(float)); }
  Range range(int64_t bucket) const;
  int64_t bucket_of(int64_t element) const;
  // The number of elements of the largest bucket.
  int64_t max_elements() const;

  // The number of elements in all chunks that `rank` owns. With `bucket`, the number in the buckets
  // below it, which is the offset of the chunk of `bucket` in a buffer of owned elements.
  int64_t owned_elements(int world_size, int rank) const;
  int64_t owned_offset(int64_t bucket, int world_size, int rank) const;

  bool operator==(const Buckets&) const = default;

 private:
  int64_t elements_, bucket_elements_, count_;
};

}  // namespace onebit::comm
