#include "onebit/exchange/comm/overlapped_exchange.h"

#include <algorithm>
#include <utility>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/profile.h"

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

ReadyBuckets::ReadyBuckets(const Buckets& buckets) : buckets_(buckets) {
  restart();
}

void ReadyBuckets::restart() {
  missing_elements_.clear();
  for (int64_t i = 0; i < buckets_.count(); ++i) {
    missing_elements_.push_back(buckets_.range(i).elements());
  }
  next_ = 0;
}

std::vector<int64_t> ReadyBuckets::ready(Range range) {
  require(range.begin >= 0 && range.begin <= range.end && range.end <= buckets_.elements(),
          "elements [{}, {}) became ready, but the buffer has only {}", range.begin, range.end,
          buckets_.elements());
  if (range.elements() == 0) return {};
  const int64_t first = buckets_.bucket_of(range.end - 1), last = buckets_.bucket_of(range.begin);
  for (int64_t bucket = first; bucket <= last; ++bucket) {
    const Range whole = buckets_.range(bucket);
    int64_t& missing = missing_elements_[static_cast<size_t>(bucket)];
    missing -= std::min(whole.end, range.end) - std::max(whole.begin, range.begin);
    require(missing >= 0, "elements of [{}, {}) became ready twice in one backward pass",
            range.begin, range.end);
  }
  std::vector<int64_t> sendable;
  while (next_ < buckets_.count() && missing_elements_[static_cast<size_t>(next_)] == 0) {
    sendable.push_back(next_++);
  }
  return sendable;
}

void ReadyBuckets::require_all() const {
  if (all_ready()) return;
  const Range waiting = buckets_.range(next_);
  fail(
      "gradients_ready was not called for the whole gradient: {} elements of [{}, {}) are missing; "
      "call it with every range, from the end of the buffer to its beginning",
      missing_elements_[static_cast<size_t>(next_)], waiting.begin, waiting.end);
}

OverlappedExchange::OverlappedExchange(Communicator& communicator, const Buckets& buckets,
                                       Device device, const Buckets& announced,
                                       BucketStations stations)
    : ready_(announced) {
  ONEBIT_INVARIANT(announced.count() == buckets.count());
  if (communicator.world_size() > 1) {
    thread_ = std::make_unique<ExchangeThread>(communicator.duplicate(), device);
  }
  pipeline_ = std::make_unique<BucketPipeline>(thread_ ? thread_->communicator() : communicator,
                                               buckets, std::move(stations));
}

OverlappedExchange::~OverlappedExchange() {
  if (thread_) thread_->stop();
}

void OverlappedExchange::begin(const Context& computing) {
  computing_ = &computing;
  ready_.restart();
  overlaps_ = false;
}

ProfileTrack* OverlappedExchange::exchange_track() const {
  ProfileTrack* const computing = computing_->profile_track();
  return computing == nullptr ? nullptr : &computing->profile().track("exchange");
}

void OverlappedExchange::ready(Range range) {
  if (!thread_) return;
  overlaps_ = true;
  for (const int64_t bucket : ready_.ready(range)) {
    thread_->submit([this, bucket, made = computing_->milestone(), track = exchange_track()](
                        Context& context, Communicator&) {
      context.set_profile_track(track);
      context.wait_for(made);
      pipeline_->submit(context, bucket);
    });
  }
}

void OverlappedExchange::finish(Context& context) {
  const Stopwatch watch;
  if (overlaps_) {
    const PhaseSpan phase(context, "exchange wait");
    ready_.require_all();
    thread_->submit([this, track = exchange_track()](Context& own, Communicator&) {
      own.set_profile_track(track);
      pipeline_->finish(own);
      own.synchronize();
    });
    thread_->wait();
  } else {
    for (int64_t bucket = 0; bucket < buckets().count(); ++bucket) {
      pipeline_->submit(context, bucket);
    }
    pipeline_->finish(context);
  }
  const ExchangeSeconds after = pipeline_->seconds();
  step_seconds_ = {.fill = after.fill - seconds_before_.fill,
                   .compute = after.compute - seconds_before_.compute,
                   .wait = overlaps_ ? watch.seconds() : after.wait - seconds_before_.wait};
  seconds_before_ = after;
}

int64_t OverlappedExchange::wire_bytes_sent() const {
  return thread_ ? thread_->communicator().wire_bytes_sent() : 0;
}

}  // namespace onebit::comm
