#include "onebit/data/prefetch.h"

#include <algorithm>
#include <utility>

#include "onebit/base/error.h"

namespace onebit::data {

Prefetcher::Prefetcher(Build build, const BatchBounds& bounds, const PrefetchOptions& options)
    : build_(std::move(build)) {
  require(options.threads >= 1, "prefetching needs at least 1 thread, {} were given",
          options.threads);
  require(options.depth >= 1, "prefetching needs a depth of at least 1, {} was given",
          options.depth);
  // One more than are held ready: the consumer reads one.
  slots_.resize(static_cast<size_t>(options.depth) + 1);
  for (Slot& each : slots_) each.batch.reserve(bounds);
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  freed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::work() {
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

const Batch* Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (next_to_hand_out_ > 0) {
    Slot& used = slot(next_to_hand_out_ - 1);
    if (used.state == State::kReady) {
      used.state = State::kEmpty;
      freed_.notify_all();
    }
  }
  Slot& wanted = slot(next_to_hand_out_);
  filled_.wait(
      lock, [&wanted] { return wanted.state != State::kEmpty && wanted.state != State::kFilling; });
  if (wanted.state == State::kFailed) std::rethrow_exception(wanted.error);
  if (wanted.state == State::kEnd) return nullptr;
  ++next_to_hand_out_;
  return &wanted.batch;
}

}  // namespace onebit::data
