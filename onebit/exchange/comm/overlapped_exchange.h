// An exchange of buckets during the backward pass that computes them: each bucket is sent as soon
// as it is complete, on a separate thread. One step is
//   begin(...);  ready(range) for every range of the buffer, or for none;  finish(...);
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "onebit/exchange/comm/bucket_exchange.h"
#include "onebit/exchange/comm/exchange_thread.h"

namespace onebit::comm {

class OverlappedExchange {
 public:
  // Submits a bucket to the exchange; called on the exchange thread or, in finish(), on the
  // caller's.
  using Send = std::function<void(Context&, int64_t bucket)>;

  // Jobs compute on `device`. With one rank there is no exchange to wait for and no thread is
  // started. Collective.
  OverlappedExchange(Communicator& communicator, const Buckets& buckets, Device device)
      : OverlappedExchange(communicator, buckets, device, buckets) {}
  // The ranges that become ready are in `announced`, which has as many buckets; this rank exchanges
  // a part of each.
  OverlappedExchange(Communicator& communicator, const Buckets& buckets, Device device,
                     const Buckets& announced);
  // Stops the thread. Everything that `Send` uses must live until then, so the owner declares this
  // member last.
  ~OverlappedExchange();

  // Constructs the exchange through which buckets are sent, once, and keeps it:
  // Exchange(communicator, buckets, args...).
  template <typename Exchange, typename... Args>
  Exchange& make(Args&&... args) {
    auto exchange =
        std::make_unique<Exchange>(communicator(), buckets_, std::forward<Args>(args)...);
    Exchange& made = *exchange;
    exchange_ = std::move(exchange);
    return made;
  }

  const Buckets& buckets() const { return buckets_; }
  // `Send` also blocks in `other`, which outlives this object.
  void also_uses(Communicator& other) {
    if (thread_) thread_->also_uses(other);
  }

  // `computing` is the context that computes the values; it outlives the step.
  void begin(const Context& computing, Send send);
  // The values in `range` are final. Any order, each element once; the same order on every rank.
  void ready(Range range);
  // Returns when every bucket has been received. If no range was ready before, or with one rank,
  // all buckets are sent here, with `context`. Error: only some ranges were ready.
  void finish(Context& context);

  // Error: a range has not become ready since begin(); the message names it.
  void require_all_ready() const { ready_.require_all(); }

  // Seconds of the last step: packing, reducing and unpacking; waiting in finish().
  const ExchangeSeconds& step_seconds() const { return step_seconds_; }
  // Bytes sent through the communicator that was created here.
  int64_t wire_bytes_sent() const;

 private:
  // The profile track of the exchange thread; null: it is not recorded.
  ProfileTrack* exchange_track() const;
  Communicator& communicator() { return thread_ ? thread_->communicator() : communicator_; }

  Communicator& communicator_;
  Buckets buckets_;
  ReadyBuckets ready_;
  const Context* computing_ = nullptr;
  Send send_;
  bool overlaps_ = false;  // ranges have become ready in this step
  ExchangeSeconds step_seconds_, seconds_before_;
  std::unique_ptr<ExchangeThread> thread_;    // with several ranks
  std::unique_ptr<BucketExchange> exchange_;  // uses the thread's communicator: destroyed before it
};

}  // namespace onebit::comm
