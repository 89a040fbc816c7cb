// Reads items sequentially, processes several at once, and writes the results in the order of
// reading.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace onebit::corpus {

// read(In&) -> bool, false at the end, is called by one thread at a time. work(thread, In&) -> Out
// is called by all threads, write(Out&) by one at a time, in order. At most 4 * threads items exist
// at once. run() rethrows the exception of the earliest item that failed.
template <typename In, typename Out>
class OrderedPipeline {
 public:
  explicit OrderedPipeline(int threads) : threads_(threads) {}

  template <typename Read, typename Work, typename Write>
  void run(const Read& read, const Work& work, const Write& write) {
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_; ++i) {
      threads.emplace_back([&, i] {
        In item{};
        uint64_t ticket = 0;
        while (take(read, item, ticket)) {
          Result result;
          try {
            if (!failed_to_read(ticket)) result.out.emplace(work(i, item));
          } catch (...) {
            result.error = std::current_exception();
          }
          hand_in(ticket, std::move(result), write);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Result {
    std::optional<Out> out;
    std::exception_ptr error;
  };

  // Returns false if nothing is left to do.
  template <typename Read>
  bool take(const Read& read, In& item, uint64_t& ticket) {
    const std::lock_guard one_reader(read_mutex_);
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [this] {
        return stopped_ || taken_ - written_ < uint64_t{4} * static_cast<uint64_t>(threads_);
      });
      if (stopped_ || ended_) return false;
    }
    std::exception_ptr error;
    bool got = false;
    try {
      got = read(item);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ended_ = !got;
    if (!got && !error) return false;
    ticket = taken_++;
    read_error_ = error;
    return true;
  }

  // Reading ends at its first error, which belongs to the last ticket.
  bool failed_to_read(uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    if (!read_error_ || ticket + 1 != taken_) return false;
    std::rethrow_exception(read_error_);
  }

  template <typename Write>
  void hand_in(uint64_t ticket, Result result, const Write& write) {
    std::unique_lock lock(mutex_);
    results_.emplace(ticket, std::move(result));
    if (writing_) return;
    writing_ = true;
    while (!stopped_ && !results_.empty() && results_.begin()->first == written_) {
      Result next = std::move(results_.begin()->second);
      results_.erase(results_.begin());
      lock.unlock();
      if (!next.error) {
        try {
          write(*next.out);
        } catch (...) {
          next.error = std::current_exception();
        }
      }
      lock.lock();
      ++written_;
      if (next.error) {
        error_ = next.error;
        stopped_ = true;
      }
      room_.notify_all();
    }
    writing_ = false;
  }

  const int threads_;
  std::mutex read_mutex_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable room_;
  uint64_t taken_ = 0, written_ = 0;
  bool ended_ = false, stopped_ = false, writing_ = false;
  std::map<uint64_t, Result> results_;
  std::exception_ptr read_error_, error_;
};

}  // namespace onebit::corpus
