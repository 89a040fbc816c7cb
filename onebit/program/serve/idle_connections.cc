#include "onebit/program/serve/idle_connections.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;

// What an event of the system may mean beside the id of a connection.
constexpr uint64_t kEndingId = 0, kEndId = 1, kFirstId = 2;

Socket make_event(int flags) {
  Socket event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | flags));
  require_call(event.is_open(), "cannot make an event");
  return event;
}

bool watch(const Socket& poll, int descriptor, uint32_t events, uint64_t id) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  // A connection that was watched before is still known to the system.
  return ::epoll_ctl(poll.get(), EPOLL_CTL_MOD, descriptor, &event) == 0 ||
         (errno == ENOENT && ::epoll_ctl(poll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0);
}

}  // namespace

IdleConnections::IdleConnections(milliseconds idle)
    : poll_(::epoll_create1(EPOLL_CLOEXEC)),
      // A count, of which each thread that sees it takes one.
      ending_signal_(make_event(EFD_SEMAPHORE)),
      end_signal_(make_event(0)),
      idle_(idle),
      next_id_(kFirstId) {
  require_call(poll_.is_open() && watch(poll_, ending_signal_.get(), EPOLLIN, kEndingId) &&
                   watch(poll_, end_signal_.get(), EPOLLIN, kEndId),
               "cannot wait for connections");
}

void IdleConnections::add(std::unique_ptr<HttpConnection> connection) {
  const std::lock_guard lock(mutex_);
  // A new id each time: an event of an earlier wait, which a thread may still hold, is nobody's.
  const uint64_t id = next_id_++;
  const int descriptor = connection->descriptor();
  const auto place = waiting_.insert(waiting_.end(), {id, std::move(connection)});
  by_id_[id] = place;
  // Given to one thread only, which waits for the mutex.
  const CallResult watched = watch(poll_, descriptor, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, id);
  if (!watched.failed()) return;
  by_id_.erase(id);
  waiting_.erase(place);
  require_call(watched, "cannot wait for a connection");
}

std::optional<IdleConnections::Taken> IdleConnections::take(milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    epoll_event event{};
    const int count = ::epoll_wait(poll_.get(), &event, 1,
                                   static_cast<int>(std::max(milliseconds{0}, left).count()));
    if (count > 0 && event.data.u64 == kEndId) return std::nullopt;
    std::optional<Taken> taken;
    if (count > 0) taken = event.data.u64 == kEndingId ? take_ending() : take_known(event.data.u64);
    if (taken || Clock::now() >= until) return taken;
  }
}

std::optional<IdleConnections::Taken> IdleConnections::take_known(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  Taken taken{std::move(found->second->connection), false};
  waiting_.erase(found->second);
  by_id_.erase(found);
  return taken;
}

std::optional<IdleConnections::Taken> IdleConnections::take_ending() {
  const std::lock_guard lock(mutex_);
  eventfd_t one = 0;
  // Another thread may have been faster.
  if (::eventfd_read(ending_signal_.get(), &one) != 0 || ending_.empty()) return std::nullopt;
  Taken taken{std::move(ending_.front()), true};
  ending_.pop_front();
  return taken;
}

void IdleConnections::end_first() {
  by_id_.erase(waiting_.front().id);
  ending_.push_back(std::move(waiting_.front().connection));
  waiting_.pop_front();
  ::eventfd_write(ending_signal_.get(), 1);
}

bool IdleConnections::has_waited(milliseconds time) const {
  return !waiting_.empty() &&
         Clock::now() >= std::max(waiting_.front().connection->idle_since(), shortened_) + time;
}

void IdleConnections::end_late() {
  const std::lock_guard lock(mutex_);
  while (has_waited(idle_)) end_first();
}

void IdleConnections::end_oldest(size_t count, milliseconds least) {
  const std::lock_guard lock(mutex_);
  // Those that end already make room, too.
  for (size_t ends = ending_.size(); ends < count && has_waited(least); ++ends) end_first();
}

void IdleConnections::shorten(milliseconds limit) {
  const std::lock_guard lock(mutex_);
  idle_ = std::min(idle_, limit);
  shortened_ = Clock::now();
}

void IdleConnections::end() {
  ::eventfd_write(end_signal_.get(), 1);
}

}  // namespace onebit::serve
