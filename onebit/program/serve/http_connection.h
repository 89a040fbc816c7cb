// One client of HTTP: its socket, and what it has sent of requests. Nothing waits for a request
// here, and a client that does not read has a limit.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "onebit/ground/base/socket.h"
#include "onebit/program/serve/http_message.h"

namespace onebit::serve {

struct ConnectionLimits {
  size_t max_body_bytes = 2'000'000;
  std::chrono::milliseconds silence{5000};  // within a request, and of a client that does not read
  std::chrono::milliseconds whole_request{60'000};  // from its first byte to its last
};

// Used by one thread at a time.
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Arrival { kBytes, kNothing, kClosed };

  // `limits` must outlive it.
  HttpConnection(Socket socket, const ConnectionLimits& limits);

  int descriptor() const { return socket_.get(); }
  // Since when it waits: the last bytes of a request, the last reply, or the beginning.
  Clock::time_point waits_since() const { return waits_since_; }

  // Receives some of what has arrived, without waiting.
  Arrival look();
  // The next request, if it has been received as a whole. If not, a client that waits for "100
  // Continue" gets it. Throws HttpError.
  std::optional<HttpRequest> take_request();
  // Whether a part of a request has been received, and its bytes.
  bool is_begun() const { return reader_.is_begun(); }
  size_t begun_bytes() const { return is_begun() ? reader_.bytes() : 0; }
  // When the request that has begun is too late, unless more of it arrives, or as a whole.
  Clock::time_point is_late_at() const;
  // Of the request. Empty: it is not known yet.
  const std::string& path() const { return reader_.path(); }
  // `closes`: the client is told that no reply follows. `has_body`: false for the answer to HEAD.
  // False: the client has gone, or does not read.
  bool send(const HttpReply& reply, bool closes, bool has_body);
  bool is_gone() const;
  // Reads what a refused client still sends: closing with unread bytes would destroy the reply on
  // its way.
  void drain();

 private:
  using Texts = std::array<std::string_view, 2>;

  bool send(Texts texts);
  bool is_writable(std::chrono::milliseconds limit) const;
  bool is_readable(std::chrono::milliseconds limit) const;

  Socket socket_;
  const ConnectionLimits& limits_;
  RequestReader reader_;
  std::string buffer_;  // bytes behind the request
  Clock::time_point waits_since_ = Clock::now();
  Clock::time_point begun_at_{};  // the request
};

}  // namespace onebit::serve
