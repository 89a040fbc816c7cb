// The pattern both exchanges follow: two collectives a bucket (all-to-all of chunks to their
// owners, all-gather of the owners' results), pipelined, in an order that is the same on every
// rank.
#pragma once

#include <array>
#include <cstdint>

#include "onebit/comm/bucket.h"
#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"

namespace onebit::comm {

// Seconds since the exchange was made; differences tell what a step spent.
struct ExchangeSeconds {
  double compute = 0;  // packing, reducing, unpacking
  double wait = 0;     // blocked on the network
};

// While bucket b is packed, the all-to-all of b-1 and the all-gather of b-2 are on their way. All
// calls of one exchange come from one thread at a time, and in the same order on all ranks.
class BucketExchange {
 public:
  virtual ~BucketExchange() = default;

  // Completes every bucket submitted so far.
  void finish(Context& context);

  const Buckets& buckets() const { return buckets_; }
  Communicator& communicator() const { return communicator_; }
  const ExchangeSeconds& seconds() const { return seconds_; }

 protected:
  // How many buckets are somewhere between submission and completion at most; `slot` numbers their
  // buffers.
  static constexpr int kSlots = 3;

  BucketExchange(Communicator& communicator, const Buckets& buckets);

  // Sends a bucket on its way: scatter, then moves on those before it.
  void advance(Context& context, int64_t bucket);
  // Lets the transport work between two pieces of computation.
  void poll();
  Range owned_chunk(int64_t bucket) const;
  Range chunk(int64_t bucket, int rank) const;

  // Packs and starts the all-to-all; reduces what has arrived and starts the all-gather; unpacks.
  virtual Request scatter(Context& context, int64_t bucket, int slot) = 0;
  virtual Request gather(Context& context, int64_t bucket, int slot) = 0;
  virtual void complete(Context& context, int64_t bucket, int slot) = 0;

 private:
  struct Flight {
    int64_t bucket = -1;  // none
    Request request;
  };
  void start_scatter(Context& context, int64_t bucket);
  void move_to_gather(Context& context);
  void move_to_complete(Context& context);

  Communicator& communicator_;
  Buckets buckets_;
  ExchangeSeconds seconds_;
  std::array<Flight, kSlots> flights_;
  int64_t submitted_ = 0, gathered_ = 0, completed_ = 0;
};

}  // namespace onebit::comm
