// An exchange of buckets during the backward pass that computes them: each bucket is sent as soon
// as it is complete, on a separate thread. One step is
//   begin(...);  ready(range) for every range of the buffer, or for none;  finish(...);
#pragma once

#include <memory>
#include <utility>

#include "onebit/exchange/comm/bucket_pipeline.h"
#include "onebit/exchange/comm/exchange_thread.h"

namespace onebit::comm {

class OverlappedExchange {
 public:
  // The stations run on the exchange thread, which computes on `device`, or in finish() on the
  // caller's. With one rank there is no exchange to wait for and no thread is started. Collective.
  OverlappedExchange(Communicator& communicator, const Buckets& buckets, Device device,
                     BucketStations stations)
      : OverlappedExchange(communicator, buckets, device, buckets, std::move(stations)) {}
  // The ranges that become ready are in `announced`, which has as many buckets; this rank exchanges
  // a part of each.
  OverlappedExchange(Communicator& communicator, const Buckets& buckets, Device device,
                     const Buckets& announced, BucketStations stations);
  // Stops the thread. Everything that the stations use must live until then, so the owner declares
  // this member last.
  ~OverlappedExchange();

  const Buckets& buckets() const { return pipeline_->buckets(); }
  // The stations also block in `other`, which outlives this object.
  void also_uses(Communicator& other) {
    if (thread_) thread_->also_uses(other);
  }

  // `computing` is the context that computes the values; it outlives the step.
  void begin(const Context& computing);
  // The values in `range` are final. Any order, each element once; the same order on every rank.
  void ready(Range range);
  // Returns when every bucket has been received. If no range was ready before, or with one rank,
  // all buckets are sent here, with `context`. Error: only some ranges were ready.
  void finish(Context& context);

  // Error: a range has not become ready since begin(); the message names it.
  void require_all_ready() const { ready_.require_all(); }

  // Seconds of the last step, of which `wait` is the time in finish(); and since construction.
  const ExchangeSeconds& step_seconds() const { return step_seconds_; }
  const ExchangeSeconds& seconds() const { return pipeline_->seconds(); }
  // Bytes sent through the communicator that was created here.
  int64_t wire_bytes_sent() const;

 private:
  // The profile track of the exchange thread; null: it is not recorded.
  ProfileTrack* exchange_track() const;

  ReadyBuckets ready_;
  const Context* computing_ = nullptr;
  bool overlaps_ = false;  // ranges have become ready in this step
  ExchangeSeconds step_seconds_, seconds_before_;
  std::unique_ptr<ExchangeThread> thread_;    // with several ranks
  std::unique_ptr<BucketPipeline> pipeline_;  // uses the thread's communicator: destroyed before it
};

}  // namespace onebit::comm
