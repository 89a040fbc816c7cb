// The pattern of both exchanges: two collectives per bucket (all-to-all of chunks to their owners,
// all-gather of the owners' results), pipelined, in the same order on every rank.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/context.h"

namespace onebit::comm {

// Seconds since construction; differences give the time of a step.
struct ExchangeSeconds {
  double compute = 0;  // packing, reducing, unpacking
  double wait = 0;     // blocked on the network
};

// While bucket b is packed, the all-to-all of b-1 and the all-gather of b-2 are in flight. All
// calls on one exchange are made by one thread at a time, in the same order on all ranks.
class BucketExchange {
 public:
  virtual ~BucketExchange() = default;
  BucketExchange(const BucketExchange&) = delete;
  BucketExchange& operator=(const BucketExchange&) = delete;

  // Completes every bucket submitted so far.
  void finish(Context& context);

  const Buckets& buckets() const { return buckets_; }
  Communicator& communicator() const { return communicator_; }
  const ExchangeSeconds& seconds() const { return seconds_; }
  // Bytes that this rank sends in one exchange of all buckets.
  int64_t wire_bytes() const;

 protected:
  // The largest number of buckets in flight, between submission and completion.
  static constexpr int kSlots = 3;

  // The buffers of a bucket that was submitted and is not yet complete.
  struct InFlightBucket {
    int slot = 0;
    int64_t bucket = -1;
    Range chunk;  // the part that this rank owns
    std::vector<int64_t> chunk_bytes,
        incoming_bytes;  // of each rank's chunk; of the message received from each rank
    Buffer send_buffer, received_buffer, result_buffer, gathered_buffer;
    // The memory of the transfers: the buffers above, or the caller's memory if no data has to be
    // converted.
    std::span<std::byte> send, received, result, gathered;
    Request request;  // last: cancelled before its buffers are freed
  };

  BucketExchange(Communicator& communicator, const Buckets& buckets);

  // Submits a bucket, then advances the earlier ones.
  void advance(Context& context, int64_t bucket);
  // Lets the transport make progress between two pieces of computation.
  void poll();
  // The slot of the next bucket.
  int next_slot() const { return static_cast<int>(submitted_ % slots_); }

  // Bytes of a chunk on the wire.
  virtual int64_t chunk_bytes(Range chunk) const = 0;
  // Whether the transfer uses the caller's memory (set_memory) instead of reserved buffers.
  virtual bool uses_caller_memory() const { return false; }
  // Whether the gathered bytes of a bucket are kept until the bucket is exchanged again. If so,
  // memory is reserved for all buckets, otherwise for those in flight.
  virtual bool keeps_gathered() const { return false; }
  // All chunks of a bucket, in rank order. Valid only if keeps_gathered(), between finish() and the
  // next submission.
  std::span<std::byte> gathered_of(int64_t bucket) const;
  // Reserves the buffers; called once by the constructor of the derived class.
  void reserve();
  // Points send, result and gathered at the caller's memory; called if uses_caller_memory().
  virtual void set_memory(InFlightBucket&) {}
  // Fills `send` with all chunks in rank order.
  virtual void pack(Context& context, InFlightBucket& in_flight) = 0;
  // Reduces `received`, this rank's chunk from every rank in rank order, into `result`.
  virtual void reduce(Context& context, InFlightBucket& in_flight) = 0;
  // Copies or decodes `gathered`, all chunks in rank order, to the caller's memory.
  virtual void unpack(Context& context, InFlightBucket& in_flight) = 0;

 private:
  InFlightBucket& in_flight_of(int64_t number) {
    return in_flight_[static_cast<size_t>(number % slots_)];
  }
  void prepare(InFlightBucket& in_flight, int64_t bucket);
  void start_scatter(Context& context, int64_t bucket);
  static void wait(const Context& context, InFlightBucket& in_flight);
  void start_gather(Context& context);
  void complete(Context& context);

  Communicator& communicator_;
  Buckets buckets_;
  ExchangeSeconds seconds_;
  Buffer kept_;                        // the gathered bytes of all buckets
  std::vector<int64_t> kept_offsets_;  // of every bucket in kept_, and its end
  int64_t slots_;                      // in use: kSlots, or the number of buckets if that is less
  std::array<InFlightBucket, kSlots> in_flight_;
  int64_t submitted_ = 0, gathered_ = 0, completed_ = 0;
};

}  // namespace onebit::comm
