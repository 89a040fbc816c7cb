// Requests that wait for a model, and the batches that it computes: as many tokens as fit, first
// come, first served, but in turns. A long request gets at most half of a batch while another one
// waits, so that a query never waits for a whole document store.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace onebit::serve {

// What one request asks of a model: parts, which may be computed in several batches. Derived
// classes hold the inputs and the results of the parts.
class Work {
 public:
  // The tokens of each part.
  explicit Work(std::vector<int64_t> tokens) : tokens_(std::move(tokens)), left_(tokens_.size()) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  size_t parts() const { return tokens_.size(); }
  int64_t tokens(size_t part) const { return tokens_[part]; }
  int64_t all_tokens() const;

  // The thread of the request: waits until all parts have ended, for at most `limit`.
  bool wait_for(std::chrono::milliseconds limit);
  // The reason why a part could not be computed. Empty: all were. Only after wait_for() is true.
  const std::string& failure() const { return failure_; }
  // From the queue's entry to the first batch, and from there to the end of the last.
  double queue_seconds() const { return queue_seconds_; }
  double inference_seconds() const { return inference_seconds_; }

 private:
  friend class WorkQueue;
  using Clock = std::chrono::steady_clock;

  std::vector<int64_t> tokens_;
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t left_;
  std::string failure_;
  double queue_seconds_ = 0, inference_seconds_ = 0;
  // Guarded by the queue's mutex.
  size_t next_ = 0;  // the first part that is in no batch yet
  Clock::time_point queued_{}, begun_{};
};

struct Part {
  std::shared_ptr<Work> work;
  size_t index;
};

struct QueueLimits {
  int64_t batch_tokens = 2048;
  int64_t batch_parts = 512;
  int64_t requests = 512;  // that wait or are being computed
};

// Used by any number of request threads and one that computes.
class WorkQueue {
 public:
  explicit WorkQueue(const QueueLimits& limits) : limits_(limits) {}

  enum class Entry { kQueued, kFull, kClosed };
  // A work without parts ends at once.
  Entry push(const std::shared_ptr<Work>& work);
  // Its client has gone: parts that are in no batch yet are left out.
  void cancel(const std::shared_ptr<Work>& work);

  // Waits for work and returns the parts of the next batch. Empty: the queue is closed, and
  // everything has been taken. A part with more tokens than a batch is one of its own.
  std::vector<Part> take();
  // Parts of a batch have ended, with a reason if they failed.
  void end(std::span<const Part> parts, const std::string& failure);
  // Nothing more can be pushed.
  void close();

  // Requests that wait or are being computed.
  int64_t requests() const;

 private:
  std::vector<Part> next_batch();

  QueueLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<Work>> waiting_;  // with parts that are in no batch yet
  int64_t requests_ = 0;
  bool is_closed_ = false;
};

}  // namespace onebit::serve
