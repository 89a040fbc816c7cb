#include "onebit/program/serve/work_queue.h"

#include <algorithm>
#include <numeric>

namespace onebit::serve {

int64_t Work::all_tokens() const {
  return std::accumulate(tokens_.begin(), tokens_.end(), int64_t{0});
}

bool Work::wait_for(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, limit, [&] { return left_ == 0; });
}

WorkQueue::Entry WorkQueue::push(const std::shared_ptr<Work>& work) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return Entry::kClosed;
  if (requests_ >= limits_.requests) return Entry::kFull;
  if (work->parts() == 0) return Entry::kQueued;
  ++requests_;
  work->queued_ = Work::Clock::now();
  waiting_.push_back(work);
  arrived_.notify_one();
  return Entry::kQueued;
}

void WorkQueue::cancel(const std::shared_ptr<Work>& work) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(waiting_.begin(), waiting_.end(), work);
  if (found == waiting_.end()) return;
  const size_t unbatched = work->parts() - work->next_;
  waiting_.erase(found);
  const std::lock_guard of_work(work->mutex_);
  work->left_ -= unbatched;
  if (work->left_ == 0) --requests_;
}

std::vector<Part> WorkQueue::take() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return !waiting_.empty() || is_closed_; });
  return next_batch();
}

std::vector<Part> WorkQueue::next_batch() {
  std::vector<Part> batch;
  int64_t tokens = 0;
  const auto is_full = [&] { return static_cast<int64_t>(batch.size()) >= limits_.batch_parts; };
  // Takes parts of one work up to its share. The first one may be larger than the share.
  const auto take_from = [&](const std::shared_ptr<Work>& work, int64_t most_tokens,
                             int64_t most_parts) {
    int64_t own_tokens = 0, own_parts = 0;
    for (; work->next_ < work->parts() && own_parts < most_parts && !is_full(); ++work->next_) {
      const int64_t size = work->tokens(work->next_);
      if (own_parts > 0 && own_tokens + size > most_tokens) break;
      if (!batch.empty() && tokens + size > limits_.batch_tokens) break;
      if (work->next_ == 0) work->begun_ = Work::Clock::now();
      batch.push_back({work, work->next_});
      tokens += size;
      own_tokens += size;
      ++own_parts;
    }
  };
  const int64_t sharers = waiting_.size() > 1 ? 2 : 1;
  for (const auto& work : waiting_) {
    take_from(work, limits_.batch_tokens / sharers,
              std::max<int64_t>(1, limits_.batch_parts / sharers));
  }
  std::deque<std::shared_ptr<Work>> untouched, begun;
  for (auto& work : waiting_) {
    if (work->next_ == work->parts()) continue;
    const bool is_begun = std::any_of(batch.begin(), batch.end(),
                                      [&](const Part& part) { return part.work == work; });
    (is_begun ? begun : untouched).push_back(std::move(work));
  }
  waiting_ = std::move(untouched);
  waiting_.insert(waiting_.end(), begun.begin(), begun.end());
  // Where a single one is left, nobody else waits for the rest of the batch.
  if (waiting_.size() == 1 && sharers > 1) {
    take_from(waiting_.front(), limits_.batch_tokens, limits_.batch_parts);
    if (waiting_.front()->next_ == waiting_.front()->parts()) waiting_.clear();
  }
  return batch;
}

void WorkQueue::end(std::span<const Part> parts, const std::string& failure) {
  const std::lock_guard lock(mutex_);
  const auto now = Work::Clock::now();
  for (const Part& part : parts) {
    Work& work = *part.work;
    const std::lock_guard of_work(work.mutex_);
    if (work.failure_.empty()) work.failure_ = failure;
    if (--work.left_ > 0) continue;
    --requests_;
    work.queue_seconds_ = std::chrono::duration<double>(work.begun_ - work.queued_).count();
    work.inference_seconds_ = std::chrono::duration<double>(now - work.begun_).count();
    work.ended_.notify_all();
  }
}

void WorkQueue::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  arrived_.notify_all();
}

int64_t WorkQueue::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

}  // namespace onebit::serve
