// An exchange of buckets during the backward pass that computes them: each bucket is sent as soon
// as it is complete, on a separate thread. One step is
//   begin(...);  ready(range) for every range of the buffer, or for none;  finish(...);
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/bucket_pipeline.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::comm {

// The context of its jobs: a single thread on a CPU, a separate stream on other devices.
Context exchange_context(Device device);

// A thread on which buckets are exchanged while the computing thread continues the backward pass.
// Runs jobs one after the other in the order of submission. Every rank must submit the same jobs in
// the same order. A job that throws aborts all ranks through the communicator at once (so that no
// rank waits for it), the next wait() rethrows its exception, and later jobs are not run.
class ExchangeThread {
 public:
  using Job = std::function<void(Context&, Communicator&)>;

  // `communicator` belongs to the thread from now on: pass a duplicate(). Jobs compute in
  // exchange_context(device).
  ExchangeThread(std::unique_ptr<Communicator> communicator, Device device);
  // Calls stop().
  ~ExchangeThread();

  void submit(Job job);
  // Returns when every job submitted so far has finished.
  void wait();
  // Ends the thread permanently: drops jobs that have not begun and interrupts the running one.
  // Call wait() first, except while unwinding from an error. Everything that jobs use must live
  // until then. The communicator outlives the thread.
  void stop();
  // Jobs also block in `other`, which stop() interrupts as well. It outlives the thread.
  void also_uses(Communicator& other) { others_.push_back(&other); }
  // For constructing the exchanges that run here and for its wire_bytes_sent(). Only jobs may call
  // its collectives.
  Communicator& communicator() { return *communicator_; }

 private:
  void run();
  bool run_job(const Job& job, Context& context);

  std::unique_ptr<Communicator> communicator_;
  std::vector<Communicator*> others_;
  Device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool busy_ = false, stopping_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: starts when all other members are constructed
};

// Tracks during a backward pass which buckets can be sent as ranges of the gradient become ready.
class ReadyBuckets {
 public:
  explicit ReadyBuckets(const Buckets& buckets);

  // Marks a range as ready (in any order, each element once per pass) and returns the buckets that
  // can be sent now. Buckets are sent in the order of their numbers: a complete one waits for those
  // before it, so that all ranks send in the same order whatever the order of the ranges.
  // Error: elements became ready twice, or outside the buffer.
  std::vector<int64_t> ready(Range range);
  bool all_ready() const { return next_ == buckets_.count(); }
  // Error: the backward pass left out a range. The message names the missing elements.
  void require_all() const;
  // Prepares for the next pass.
  void restart();

 private:
  Buckets buckets_;
  std::vector<int64_t> missing_elements_;
  int64_t next_ = 0;
};

class OverlappedExchange {
 public:
  // The stations run on the exchange thread, which computes on `device`, or in finish() on the
  // caller's. With one rank there is no exchange to wait for and no thread is started. Collective.
  OverlappedExchange(Communicator& communicator, const Buckets& buckets, Device device,
                     BucketStations stations)
      : OverlappedExchange(communicator, buckets, device, buckets, std::move(stations)) {}
  // The ranges that become ready are in `announced`, which has as many buckets. This rank exchanges
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

  // `computing` is the context that computes the values. It outlives the step.
  void begin(const Context& computing);
  // The values in `range` are final. Any order, each element once, the same order on every rank.
  void ready(Range range);
  // Returns when every bucket has been received. If no range was ready before, or with one rank,
  // all buckets are sent here, with `context`. Error: only some ranges were ready.
  void finish(Context& context);

  // Error: a range has not become ready since begin(). The message names it.
  void require_all_ready() const { ready_.require_all(); }

  // Seconds of the last step, of which `wait` is the time in finish(), and since construction.
  const ExchangeSeconds& step_seconds() const { return step_seconds_; }
  const ExchangeSeconds& seconds() const { return pipeline_->seconds(); }
  // Bytes sent through the communicator that was created here.
  int64_t wire_bytes_sent() const;

 private:
  // The profile track of the exchange thread. Null: it is not recorded.
  ProfileTrack* exchange_track() const;

  ReadyBuckets ready_;
  const Context* computing_ = nullptr;
  bool overlaps_ = false;  // ranges have become ready in this step
  ExchangeSeconds step_seconds_, seconds_before_;
  std::unique_ptr<ExchangeThread> thread_;    // with several ranks
  std::unique_ptr<BucketPipeline> pipeline_;  // uses the thread's communicator: destroyed before it
};

}  // namespace onebit::comm
