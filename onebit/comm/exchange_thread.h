// A thread beside the one that computes, on which buckets are exchanged while the backward pass
// continues.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"

namespace onebit::comm {

// The context of its jobs: one thread on a CPU, a stream of their own elsewhere.
Context exchange_context(Device device);

// Runs jobs one after the other in the order of submission. Every rank must submit the same jobs in
// the same order. A job that throws aborts all ranks through the communicator at once (so that no
// rank waits for it), its exception comes out of the next wait(), and later jobs are not run.
class ExchangeThread {
 public:
  using Job = std::function<void(Context&, Communicator&)>;

  // `communicator` belongs to the thread from now on: give it a duplicate(). Jobs compute in
  // exchange_context(device).
  ExchangeThread(std::unique_ptr<Communicator> communicator, Device device);
  // Stops.
  ~ExchangeThread();

  void submit(Job job);
  // Returns when every job submitted so far has ended.
  void wait();
  // Ends the thread for good: drops jobs that have not begun and interrupts the one that runs, so
  // wait() first unless on the way out of an error. What jobs use must live until then; the
  // communicator lives on.
  void stop();
  // Jobs also block in `other`, which stop() interrupts as well. It outlives the thread.
  void also_uses(Communicator& other) { others_.push_back(&other); }
  // For building exchanges that run here, and for its wire_bytes_sent(); collectives belong to
  // jobs.
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
  std::thread thread_;  // last: starts when everything else stands
};

}  // namespace onebit::comm
