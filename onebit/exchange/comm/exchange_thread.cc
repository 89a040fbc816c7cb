#include "onebit/exchange/comm/exchange_thread.h"

#include <utility>

namespace onebit::comm {

ExchangeThread::ExchangeThread(std::unique_ptr<Communicator> communicator, Device device)
    : communicator_(std::move(communicator)), device_(device), thread_([this] { run(); }) {}

ExchangeThread::~ExchangeThread() {
  stop();
}

void ExchangeThread::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
    if (busy_) {
      communicator_->interrupt();
      for (Communicator* other : others_) other->interrupt();
    }
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

// Returns false if stop() interrupted the job: its caller has an error of its own, which the other
// ranks shall receive instead of this one.
bool ExchangeThread::run_job(const Job& job, Context& context) {
  try {
    job(context, *communicator_);
    return true;
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    if (!stopping_) throw;
    return false;
  }
}

Context exchange_context(Device device) {
  return device.is_cpu() ? Context::cpu(1) : Context::cuda(device.index);
}

void ExchangeThread::run() {
  std::unique_lock lock(mutex_);
  try {
    run_rank(*communicator_, [&] {
      lock.unlock();
      Context context = exchange_context(device_);
      lock.lock();
      for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        busy_ = true;
        lock.unlock();
        const bool done = run_job(job, context);
        lock.lock();
        busy_ = false;
        if (!done) return;
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
