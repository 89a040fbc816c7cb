// The route of a bucket through an exchange. Both exchanges have the same stations, in this order:
//
//   fill      the values to send are computed, or their place is noted
//   pack      values -> chunks on the wire, one for each owner
//   send      all-to-all: every chunk to its owner
//   reduce    this rank's chunk, from every rank -> one result
//   return    all-gather: the owners' results to all ranks
//   deliver   results on the wire -> the caller
//
// `send` and `return` are the collectives of the pipeline. The other four are the table of an
// exchange: dense_exchange.h has one, compress/compressed_all_reduce.h the other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::comm {

// Seconds since construction. Differences give the time of a step.
struct ExchangeSeconds {
  double fill = 0;
  double compute = 0;  // packing, reducing, delivering
  double wait = 0;     // blocked on the network
};

// The largest number of buckets between `fill` and `deliver`, each in a slot of its own.
inline constexpr int kBucketsInFlight = 3;

struct BucketInFlight {
  int slot = 0;
  int64_t bucket = -1;
  Range range;  // of the bucket
  Range chunk;  // the part of it that this rank owns
  View values;  // for the stations alone: where `fill` notes the bucket's values
  // Bytes of each rank's chunk, and of the message received from each rank.
  std::vector<int64_t> chunk_bytes, incoming_bytes;
  // All chunks in rank order; this rank's chunk from every rank in rank order; this rank's result;
  // all results in rank order. Empty if a single rank sends nothing.
  std::span<std::byte> send, received, result, gathered;
  // Lets the transport make progress. Stations call it between two pieces of computation.
  std::function<void()> poll;
};

// The table of an exchange. A station may be empty.
struct BucketStations {
  using Station = std::function<void(Context&, BucketInFlight&)>;
  // Memory that `fill` provides for a bucket. The pipeline reserves the rest.
  enum class Provides { kNothing, kGathered, kSendResultAndGathered };

  std::function<int64_t(Range chunk)> chunk_bytes;  // on the wire
  Provides fill_provides = Provides::kNothing;
  // A single rank goes through all stations as well, instead of `fill` and `deliver` alone.
  bool exchanges_alone = false;
  Station fill = {}, pack = {}, reduce = {}, deliver = {};
};

// While bucket b is packed, the all-to-all of b-1 and the all-gather of b-2 are in flight. All
// calls on one pipeline are made by one thread at a time, in the same order on all ranks.
class BucketPipeline {
 public:
  // Reserves all memory: a step allocates nothing.
  BucketPipeline(Communicator& communicator, const Buckets& buckets, BucketStations stations);
  BucketPipeline(const BucketPipeline&) = delete;
  BucketPipeline& operator=(const BucketPipeline&) = delete;

  // Fills, packs and sends a bucket, then advances the earlier ones. A bucket is submitted at most
  // once between two calls of finish(). Buckets are delivered in the order of submission, on this
  // thread and with its context, in whose order of work they are complete.
  void submit(Context& context, int64_t bucket);
  // Completes every bucket submitted so far.
  void finish(Context& context);

  const Buckets& buckets() const { return buckets_; }
  Communicator& communicator() const { return communicator_; }
  const ExchangeSeconds& seconds() const { return seconds_; }
  // Bytes that this rank sends in one exchange of all buckets.
  int64_t wire_bytes() const;

 private:
  struct Slot {
    BucketInFlight bucket;
    Buffer send, received, result, gathered;
    Request request;  // last: cancelled before its buffers are freed
  };

  bool sends() const { return communicator_.world_size() > 1 || stations_.exchanges_alone; }
  Slot& slot_of(int64_t number) { return in_flight_[static_cast<size_t>(number % slots_)]; }
  void reserve();
  void prepare(Slot& slot, int64_t bucket);
  void fill(Context& context, BucketInFlight& in_flight);
  void start_scatter(Context& context, int64_t bucket);
  static void wait(const Context& context, Slot& slot);
  void start_gather(Context& context);
  void complete(Context& context);
  void deliver(Context& context, BucketInFlight& in_flight);

  Communicator& communicator_;
  Buckets buckets_;
  BucketStations stations_;
  ExchangeSeconds seconds_;
  int64_t slots_;  // in use: kBucketsInFlight, or the number of buckets if that is less
  std::array<Slot, kBucketsInFlight> in_flight_;
  int64_t submitted_ = 0, gathered_ = 0, completed_ = 0;
};

}  // namespace onebit::comm
