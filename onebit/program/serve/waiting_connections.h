// Connections that wait for a request or for the rest of one, without a thread for each: the
// threads that answer requests share one wait for all of them.
//
// Nobody closes a connection from outside, which could cut a request that arrives at this moment. A
// connection that shall end is given to a thread as if it had sent something, and that thread looks
// whether it has.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "onebit/ground/base/socket.h"
#include "onebit/program/serve/http_connection.h"

namespace onebit::serve {

// Used by any number of threads.
class WaitingConnections {
 public:
  using Clock = HttpConnection::Clock;

  // `idle`: how long a connection without a request may wait. `most_bytes`: of all requests that
  // have begun and are not whole.
  WaitingConnections(std::chrono::milliseconds idle, size_t most_bytes);

  void add(std::unique_ptr<HttpConnection> connection);

  struct Taken {
    std::unique_ptr<HttpConnection> connection;
    bool shall_end;  // unless something has arrived
  };
  // Waits for a connection that has sent something, was closed or shall end. Nothing: there is none
  // within `limit`, or end() was called.
  std::optional<Taken> take(std::chrono::milliseconds limit);

  // Those shall end that have waited too long, and while requests hold too much, those that have
  // paused longest.
  void end_late();
  // Whether requests that have begun hold more than `most_bytes`.
  bool holds_too_much() const;
  // Those without a request shall end that have waited longest, and for `least`, then those whose
  // requests have paused longest, and for `pause`: at most `count` of them.
  void end_oldest(size_t count, std::chrono::milliseconds least, std::chrono::milliseconds pause);
  // From now on a connection without a request may wait for `limit` after its last reply, or after
  // this call.
  void shorten(std::chrono::milliseconds limit);
  // No connection is given out any more.
  void end();

 private:
  struct Waiting {
    uint64_t id;
    std::unique_ptr<HttpConnection> connection;
  };
  using List = std::list<Waiting>;  // in the order in which they came
  struct Place {
    List* list;
    List::iterator at;
  };

  std::optional<Taken> take_known(uint64_t id);
  std::optional<Taken> take_ending();
  // With the mutex.
  std::unique_ptr<HttpConnection> remove(uint64_t id);
  void let_end(uint64_t id);

  Socket poll_, ending_signal_, end_signal_;
  mutable std::mutex mutex_;
  std::chrono::milliseconds idle_limit_;
  Clock::time_point shortened_{};
  uint64_t next_id_;
  List idle_, begun_;  // without a request, and with a part of one
  const size_t most_bytes_;
  size_t begun_bytes_ = 0;
  std::unordered_map<uint64_t, Place> by_id_;
  std::deque<std::unique_ptr<HttpConnection>> ending_;
};

}  // namespace onebit::serve
