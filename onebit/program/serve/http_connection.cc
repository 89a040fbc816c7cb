#include "onebit/program/serve/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;
using Clock = HttpConnection::Clock;

milliseconds left(Clock::time_point end) {
  return std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(end - Clock::now()));
}

bool would_wait(int error) {
  return error == EAGAIN || error == EINTR;
}

}  // namespace

HttpConnection::HttpConnection(Socket socket, const ConnectionLimits& limits)
    : socket_(std::move(socket)), limits_(limits), reader_({.body_bytes = limits.max_body_bytes}) {}

HttpConnection::Arrival HttpConnection::look() {
  std::array<char, 16384> bytes;
  const ssize_t count = ::recv(descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && would_wait(errno)) return Arrival::kNothing;
  if (count <= 0) return Arrival::kClosed;
  buffer_.append(bytes.data(), static_cast<size_t>(count));
  return Arrival::kBytes;
}

std::optional<HttpRequest> HttpConnection::take_request() {
  const bool was_begun = is_begun();
  const size_t added = reader_.add(buffer_);
  buffer_.erase(0, added);
  // Empty lines before a request do not make an idle connection wait longer.
  if (added > 0 && is_begun()) waits_since_ = Clock::now();
  if (!was_begun) begun_at_ = waits_since_;
  if (reader_.is_complete()) return reader_.take();
  // Whoever has gone is noticed when bytes are received.
  if (reader_.takes_continue()) send({"HTTP/1.1 100 Continue\r\n\r\n", ""});
  return std::nullopt;
}

HttpConnection::Clock::time_point HttpConnection::is_late_at() const {
  return std::min(waits_since_ + limits_.silence, begun_at_ + limits_.whole_request);
}

bool HttpConnection::send(const HttpReply& reply, bool closes, bool has_body) {
  const std::string head = reply_head(reply, closes);
  const bool is_sent = send({head, has_body ? std::string_view(reply.body) : ""});
  waits_since_ = Clock::now();
  return is_sent;
}

bool HttpConnection::send(Texts texts) {
  const Clock::time_point end = Clock::now() + limits_.whole_request;
  while (!texts[0].empty() || !texts[1].empty()) {
    std::array<iovec, 2> parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      // sendmsg() only reads.
      parts[i] = {.iov_base = const_cast<char*>(texts[i].data()), .iov_len = texts[i].size()};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      auto bytes = static_cast<size_t>(sent);
      for (std::string_view& text : texts) {
        const size_t own = std::min(bytes, text.size());
        text.remove_prefix(own);
        bytes -= own;
      }
      continue;
    }
    const bool is_broken = sent < 0 && !would_wait(errno);
    if (is_broken || !is_writable(std::min(limits_.silence, left(end)))) return false;
  }
  return true;
}

bool HttpConnection::is_gone() const {
  pollfd one{.fd = descriptor(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

void HttpConnection::drain() {
  ::shutdown(descriptor(), SHUT_WR);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(1);
  size_t most = size_t{8} << 20;
  while (Clock::now() < end && most > 0) {
    buffer_.clear();
    if (!is_readable(left(end)) || look() != Arrival::kBytes) return;
    most -= std::min(most, buffer_.size());
  }
}

bool HttpConnection::is_readable(milliseconds limit) const {
  pollfd one{.fd = descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

bool HttpConnection::is_writable(milliseconds limit) const {
  pollfd one{.fd = descriptor(), .events = POLLOUT, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace onebit::serve
