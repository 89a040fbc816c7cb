// An exchange of buckets beside the backward pass that makes them: as soon as a bucket is complete
// it is sent on a thread of its own. One step is
//   begin(...);  ready(range) for every range of the buffer, or for none;  finish(...);
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "onebit/comm/bucket_exchange.h"
#include "onebit/comm/exchange_thread.h"

namespace onebit::comm {

class OverlappedExchange {
 public:
  // Hands a bucket to the exchange, on the thread of the exchange or, in finish(), on the caller's.
  using Send = std::function<void(Context&, int64_t bucket)>;

  // Jobs compute on `device`. One rank alone has nothing to wait for and gets no thread.
  // Collective.
  OverlappedExchange(Communicator& communicator, const Buckets& buckets, Device device);
  // Stops the thread. What `Send` uses must live until then: of its owner's members this is the
  // last.
  ~OverlappedExchange();

  // Makes the exchange that buckets are sent through, once, and keeps it: Exchange(communicator,
  // buckets, args...).
  template <typename Exchange, typename... Args>
  Exchange& make(Args&&... args) {
    auto exchange =
        std::make_unique<Exchange>(communicator(), buckets_, std::forward<Args>(args)...);
    Exchange& made = *exchange;
    exchange_ = std::move(exchange);
    return made;
  }

  const Buckets& buckets() const { return buckets_; }

  // `computing` is the context that makes the values; it outlives the step.
  void begin(const Context& computing, Send send);
  // The values in `range` are final. Any order, each element once, the same order on every rank.
  void ready(Range range);
  // Every bucket has been received when it returns. Where no range was ready before, and on one
  // rank, all of them are sent here, with `context`. Error: some ranges were not ready.
  void finish(Context& context);

  // Error: some range has not become ready since begin(); says which.
  void require_all_ready() const { ready_.require_all(); }

  // Of the last step: packing, reducing and unpacking, and how long finish() waited.
  const ExchangeSeconds& step_seconds() const { return step_seconds_; }
  // Through the communicator that was made here.
  int64_t wire_bytes_sent() const;

 private:
  // Where the thread of the exchange is recorded; null: nowhere.
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
  std::unique_ptr<BucketExchange> exchange_;  // on the thread's communicator: goes before it
};

}  // namespace onebit::comm
