// A thread on which buckets are exchanged while the computing thread continues the backward pass.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/context.h"

namespace onebit::comm {

// The context of its jobs: a single thread on a CPU, a separate stream on other devices.
Context exchange_context(Device device);

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
  // until then; the communicator outlives the thread.
  void stop();
  // Jobs also block in `other`, which stop() interrupts as well. It outlives the thread.
  void also_uses(Communicator& other) { others_.push_back(&other); }
  // For constructing the exchanges that run here and for its wire_bytes_sent(); only jobs may call
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

}  // namespace onebit::comm
