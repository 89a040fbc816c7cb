// Builds batches ahead of the training loop on threads of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "onebit/data/batch.h"

namespace onebit::data {

struct PrefetchOptions {
  int threads = 1;
  int depth = 4;  // batches held ready or in the making
};

// Hands out batches 0, 1, 2, ... in order.
class Prefetcher {
 public:
  // `build` fills batch `ticket` and returns true, or false past the last one. It is called from
  // several threads when threads > 1. `bounds` books the memory of all batches at once.
  using Build = std::function<bool(int64_t ticket, Batch& batch)>;
  Prefetcher(Build build, const BatchBounds& bounds, const PrefetchOptions& options);
  // Stops and joins; a batch in the making is finished first.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch, valid until the following call; null at the end. Rethrows what `build` threw
  // for this batch.
  const Batch* next();

 private:
  enum class State { kEmpty, kFilling, kReady, kEnd, kFailed };
  struct Slot {
    State state = State::kEmpty;
    Batch batch;
    std::exception_ptr error;
  };

  void work();
  Slot& slot(int64_t ticket) { return slots_[static_cast<size_t>(ticket) % slots_.size()]; }

  Build build_;
  std::mutex mutex_;  // guards all below but the batches, which belong to who works on their slot
  std::condition_variable filled_, freed_;
  std::vector<Slot> slots_;
  int64_t next_to_fill_ = 0;
  int64_t next_to_hand_out_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace onebit::data
