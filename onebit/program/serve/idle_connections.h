// Connections that wait for a request, without a thread for each: the threads that answer requests
// share one wait for all of them.
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
class IdleConnections {
 public:
  using Clock = HttpConnection::Clock;

  // `idle`: how long a connection may wait.
  explicit IdleConnections(std::chrono::milliseconds idle);

  void add(std::unique_ptr<HttpConnection> connection);

  struct Taken {
    std::unique_ptr<HttpConnection> connection;
    bool shall_end;  // unless a request has arrived
  };
  // Waits for a connection that has sent something, was closed or shall end. Nothing: there is none
  // within `limit`, or end() was called.
  std::optional<Taken> take(std::chrono::milliseconds limit);

  // Those shall end that have waited too long.
  void end_late();
  // Those shall end that have waited longest, and for `least`: at most `count` of them.
  void end_oldest(size_t count, std::chrono::milliseconds least);
  // From now on a connection may wait for `limit` after its last reply, or after this call.
  void shorten(std::chrono::milliseconds limit);
  // No connection is given out any more.
  void end();

 private:
  struct Waiting {
    uint64_t id;
    std::unique_ptr<HttpConnection> connection;
  };

  std::optional<Taken> take_known(uint64_t id);
  std::optional<Taken> take_ending();
  // With the mutex.
  bool has_waited(std::chrono::milliseconds time) const;  // the first one
  void end_first();

  Socket poll_, ending_signal_, end_signal_;
  std::mutex mutex_;
  std::chrono::milliseconds idle_;
  Clock::time_point shortened_{};
  uint64_t next_id_;
  std::list<Waiting> waiting_;  // in the order in which they came
  std::unordered_map<uint64_t, std::list<Waiting>::iterator> by_id_;
  std::deque<std::unique_ptr<HttpConnection>> ending_;
};

}  // namespace onebit::serve
