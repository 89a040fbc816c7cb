#include "onebit/program/serve/waiting_connections.h"

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

WaitingConnections::WaitingConnections(milliseconds idle, size_t most_bytes)
    : poll_(::epoll_create1(EPOLL_CLOEXEC)),
      // A count, of which each thread that sees it takes one.
      ending_signal_(make_event(EFD_SEMAPHORE)),
      end_signal_(make_event(0)),
      idle_limit_(idle),
      next_id_(kFirstId),
      most_bytes_(most_bytes) {
  require_call(poll_.is_open() && watch(poll_, ending_signal_.get(), EPOLLIN, kEndingId) &&
                   watch(poll_, end_signal_.get(), EPOLLIN, kEndId),
               "cannot wait for connections");
}

void WaitingConnections::add(std::unique_ptr<HttpConnection> connection) {
  const std::lock_guard lock(mutex_);
  // A new id each time: an event of an earlier wait, which a thread may still hold, is nobody's.
  const uint64_t id = next_id_++;
  const int descriptor = connection->descriptor();
  begun_bytes_ += connection->begun_bytes();
  List& list = connection->is_begun() ? begun_ : idle_;
  by_id_[id] = {&list, list.insert(list.end(), {id, std::move(connection)})};
  // Given to one thread only, which waits for the mutex.
  const CallResult watched = watch(poll_, descriptor, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, id);
  if (!watched.failed()) return;
  remove(id).reset();
  require_call(watched, "cannot wait for a connection");
}

std::optional<WaitingConnections::Taken> WaitingConnections::take(milliseconds limit) {
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

std::unique_ptr<HttpConnection> WaitingConnections::remove(uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  const Place place = found->second;
  std::unique_ptr<HttpConnection> connection = std::move(place.at->connection);
  begun_bytes_ -= connection->begun_bytes();
  place.list->erase(place.at);
  by_id_.erase(found);
  return connection;
}

std::optional<WaitingConnections::Taken> WaitingConnections::take_known(uint64_t id) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<HttpConnection> connection = remove(id);
  if (!connection) return std::nullopt;
  return Taken{std::move(connection), false};
}

std::optional<WaitingConnections::Taken> WaitingConnections::take_ending() {
  const std::lock_guard lock(mutex_);
  eventfd_t one = 0;
  // Another thread may have been faster.
  if (::eventfd_read(ending_signal_.get(), &one) != 0 || ending_.empty()) return std::nullopt;
  Taken taken{std::move(ending_.front()), true};
  ending_.pop_front();
  return taken;
}

void WaitingConnections::let_end(uint64_t id) {
  ending_.push_back(remove(id));
  ::eventfd_write(ending_signal_.get(), 1);
}

void WaitingConnections::end_late() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  while (!idle_.empty() &&
         now >= std::max(idle_.front().connection->waits_since(), shortened_) + idle_limit_) {
    let_end(idle_.front().id);
  }
  // A request in small pieces may be late before others that came earlier.
  for (auto next = begun_.begin(); next != begun_.end();) {
    const auto at = next++;
    if (now >= at->connection->is_late_at()) let_end(at->id);
  }
  while (begun_bytes_ > most_bytes_) let_end(begun_.front().id);
}

bool WaitingConnections::holds_too_much() const {
  const std::lock_guard lock(mutex_);
  return begun_bytes_ > most_bytes_;
}

void WaitingConnections::end_oldest(size_t count, milliseconds least, milliseconds pause) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  const auto end_first = [&](List& list, Clock::time_point latest) {
    // Those that end already make room, too.
    while (ending_.size() < count && !list.empty() &&
           list.front().connection->waits_since() <= latest) {
      let_end(list.front().id);
    }
  };
  end_first(idle_, now - least);
  end_first(begun_, now - pause);
}

void WaitingConnections::shorten(milliseconds limit) {
  const std::lock_guard lock(mutex_);
  idle_limit_ = std::min(idle_limit_, limit);
  shortened_ = Clock::now();
}

void WaitingConnections::end() {
  ::eventfd_write(end_signal_.get(), 1);
}

}  // namespace onebit::serve
