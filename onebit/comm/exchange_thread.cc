#include "onebit/comm/exchange_thread.h"

#include <utility>

namespace onebit::comm {

ExchangeThread::ExchangeThread(std::unique_ptr<Communicator> communicator,
                               std::function<Context()> make_context)
    : communicator_(std::move(communicator)),
      make_context_(std::move(make_context)),
      thread_([this] { run(); }) {}

ExchangeThread::~ExchangeThread() {
  stop();
}

void ExchangeThread::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
    if (busy_) communicator_->interrupt();
    changed_.notify_all();
  }
  thread_.join();
}

void ExchangeThread::submit(Job job) {
  const std::lock_guard lock(mutex_);
  ONEBIT_INVARIANT(!stopping_);
  if (error_) return;  // reported by wait()
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void ExchangeThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return error_ || (jobs_.empty() && !busy_); });
  if (error_) std::rethrow_exception(error_);
}

void ExchangeThread::run() {
  std::unique_lock lock(mutex_);
  try {
    run_rank(*communicator_, [&] {
      lock.unlock();
      Context context = make_context_();
      lock.lock();
      for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        busy_ = true;
        lock.unlock();
        job(context, *communicator_);
        lock.lock();
        busy_ = false;
        changed_.notify_all();
      }
    });
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
    jobs_.clear();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace onebit::comm
