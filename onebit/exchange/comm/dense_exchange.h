// The uncompressed average over ranks, computed by chunk owners: every rank sends each chunk to its
// owner, which adds them in rank order in f32 and sends the average to all ranks. So the result is
// bit-identical on every rank and with every transport.
#pragma once

#include <array>

#include "onebit/exchange/comm/bucket_exchange.h"
#include "onebit/math/tensor/view.h"

namespace onebit::comm {

class DenseExchange final : public BucketExchange {
 public:
  // `wire` is the type on the wire: f32, bf16 or f16 (`communication_data_type`); the 16-bit types
  // round every contribution once and the average once. Error: another type.
  DenseExchange(Communicator& communicator, const Buckets& buckets, DType wire);

  // `values` f32 [elements of the bucket]: this rank's values, and after finish() the average over
  // ranks. Must live until then. A single rank keeps its values unchanged.
  void submit(Context& context, int64_t bucket, View values);
  // Submits every bucket of the flat buffer `values` f32 [elements] and finishes.
  void average(Context& context, View values);

 protected:
  int64_t chunk_bytes(Range chunk) const override;
  bool uses_caller_memory() const override { return wire_ == DType::kF32; }
  void set_memory(InFlightBucket& in_flight) override;
  void pack(Context& context, InFlightBucket& in_flight) override;
  void reduce(Context& context, InFlightBucket& in_flight) override;
  void unpack(Context& context, InFlightBucket& in_flight) override;

 private:
  DType wire_;
  std::array<View, kSlots> values_;
};

// Bytes that each rank sends in a ring all-reduce of `elements` 16-bit values: the baseline for the
// savings by compression.
constexpr int64_t ring_bytes_16bit(int64_t elements, int world_size) {
  return 4 * elements * (world_size - 1) / world_size;
}

}  // namespace onebit::comm
