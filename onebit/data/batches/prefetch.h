// Builds batches ahead of the training loop on its own threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"

namespace onebit::batches {

struct PrefetchOptions {
  int threads = 1;
  int depth = 4;  // number of batches that are ready or being built
};

// Returns batches 0, 1, 2, ... in order.
template <typename Batch>
class Prefetcher {
 public:
  // Fills batch `ticket` and returns true, or false past the last one. Called from several threads
  // when threads > 1.
  using Build = std::function<bool(int64_t ticket, Batch& batch)>;
  // `make` returns an empty batch with reserved memory. All are created at once.
  Prefetcher(Build build, const std::function<Batch()>& make, const PrefetchOptions& options)
      : build_(std::move(build)) {
    require(options.threads >= 1, "prefetching needs at least 1 thread, {} were given",
            options.threads);
    require(options.depth >= 1, "prefetching needs a depth of at least 1, {} was given",
            options.depth);
    // One slot more than `depth`: the consumer reads one.
    slots_.resize(static_cast<size_t>(options.depth) + 1);
    for (Slot& each : slots_) each.batch = make();
    for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { work(); });
  }
  // Stops and joins the threads after they finish their current batches.
  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    freed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns the next batch, valid until the following call, or null at the end. To keep it longer,
  // exchange it for another batch from `make`. Rethrows what `build` threw for this batch.
  Batch* next() {
    std::unique_lock lock(mutex_);
    if (next_to_hand_out_ > 0) {
      Slot& used = slot(next_to_hand_out_ - 1);
      if (used.state == State::kReady) {
        used.state = State::kEmpty;
        freed_.notify_all();
      }
    }
    Slot& wanted = slot(next_to_hand_out_);
    filled_.wait(lock, [&wanted] {
      return wanted.state != State::kEmpty && wanted.state != State::kFilling;
    });
    if (wanted.state == State::kFailed) std::rethrow_exception(wanted.error);
    if (wanted.state == State::kEnd) return nullptr;
    ++next_to_hand_out_;
    return &wanted.batch;
  }

 private:
  enum class State { kEmpty, kFilling, kReady, kEnd, kFailed };
  struct Slot {
    State state = State::kEmpty;
    Batch batch;
    std::exception_ptr error;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      freed_.wait(lock, [this] { return stopping_ || slot(next_to_fill_).state == State::kEmpty; });
      if (stopping_) return;
      const int64_t ticket = next_to_fill_++;
      Slot& mine = slot(ticket);
      mine.state = State::kFilling;
      lock.unlock();
      State outcome = State::kFailed;
      std::exception_ptr error;
      try {
        outcome = build_(ticket, mine.batch) ? State::kReady : State::kEnd;
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      mine.state = outcome;
      mine.error = error;
      filled_.notify_one();
      if (outcome != State::kReady) return;
    }
  }
  Slot& slot(int64_t ticket) { return slots_[static_cast<size_t>(ticket) % slots_.size()]; }

  Build build_;
  std::mutex mutex_;  // guards all below but the batches, which belong to the user of their slot
  std::condition_variable filled_, freed_;
  std::vector<Slot> slots_;
  int64_t next_to_fill_ = 0;
  int64_t next_to_hand_out_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace onebit::batches
