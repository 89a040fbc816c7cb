#include "onebit/program/serve/http_server.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "onebit/exchange/transport/tcp_addresses.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/socket.h"

namespace onebit::serve {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostHeadBytes = size_t{32} << 10;
constexpr milliseconds kTurn{50};  // between two looks at whether the server is asked to stop
// For how long a connection without a request stays open after stop: a client that has just got an
// answer may have sent its next request.
constexpr milliseconds kLastRequest{500};

Socket listen_on(const std::string& host, int port) {
  const transport::TcpAddress address = transport::resolve(host, port).front();
  Socket socket = transport::listen_at(address);
  const int reason = errno;
  const bool is_bound = socket.is_open();
  require(is_bound || reason != EADDRINUSE,
          "port {} of {} is in use: give another with --port, or end the program that has it "
          "(`ss -ltnp 'sport = :{}'` names it)",
          port, host, port);
  require(is_bound || reason != EACCES,
          "port {} needs privileges that this process does not have: give one above 1023 with "
          "--port, and put a proxy before it",
          port);
  require(is_bound || reason != EADDRNOTAVAIL,
          "{} is not an address of this machine: give one of its own with --host, or 0.0.0.0 for "
          "all",
          host);
  require(is_bound, "cannot listen on port {} of {}: {}", port, host, reason_of(reason));
  return socket;
}

enum class Arrival { kBytes, kSilence, kClosed };

// One client. Every wait has an end.
class Connection {
 public:
  Connection(int descriptor, const HttpServerOptions& options, const std::atomic<bool>& stops)
      : descriptor_(descriptor), options_(options), stops_(stops) {}

  // Waits for the first byte of a request. False: there is none.
  bool wait_for_request() {
    if (!buffer_.empty()) return true;
    Clock::time_point end = Clock::now() + options_.idle;
    for (;;) {
      if (stops_) end = std::min(end, Clock::now() + kLastRequest);
      if (is_readable(std::min(kTurn, left(end))))
        return receive(milliseconds{0}) == Arrival::kBytes;
      if (Clock::now() >= end) return false;
    }
  }

  // Reads the rest of the request. Throws HttpError. False: the client has gone.
  bool read_request(HttpRequest& request) {
    const Clock::time_point end = Clock::now() + options_.whole_request;
    size_t searched = 0, head_end, next;
    // Empty lines before a request are allowed.
    for (;;) {
      const size_t begin = std::min(buffer_.find_first_not_of("\r\n"), buffer_.size());
      buffer_.erase(0, begin);
      searched -= std::min(searched, begin);
      if (find_head_end(searched, head_end, next)) break;
      searched = buffer_.size() - std::min<size_t>(buffer_.size(), 3);
      if (buffer_.size() > kMostHeadBytes) throw HttpError(431, "the headers are too long");
      if (!receive_until(end)) return false;
    }
    request = parse_head(std::string_view(buffer_).substr(0, head_end));
    buffer_.erase(0, next);
    const BodyFraming framing = body_framing(request, options_.max_body_bytes);
    const bool has_body = framing.is_chunked || framing.size_bytes > 0;
    if (has_body && request.header("expect").value_or("") == "100-continue" &&
        !send("HTTP/1.1 100 Continue\r\n\r\n")) {
      return false;
    }
    return framing.is_chunked ? read_chunks(request, end) : read_sized(request, framing, end);
  }

  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent =
          ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        text.remove_prefix(static_cast<size_t>(sent));
      } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        return false;
      } else if (!is_ready(POLLOUT, options_.silence)) {
        return false;
      }
    }
    return true;
  }

  bool is_gone() const {
    pollfd one{.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
    return ::poll(&one, 1, 0) > 0;
  }

  // Reads what a refused client still sends: closing with unread bytes would destroy the reply on
  // its way.
  void drain() {
    ::shutdown(descriptor_, SHUT_WR);
    const Clock::time_point end = Clock::now() + std::chrono::seconds(1);
    size_t most = size_t{8} << 20;
    while (Clock::now() < end && most > 0) {
      buffer_.clear();
      if (receive(left(end)) != Arrival::kBytes) return;
      most -= std::min(most, buffer_.size());
    }
  }

 private:
  static milliseconds left(Clock::time_point end) {
    return std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(end - Clock::now()));
  }

  bool is_ready(short events, milliseconds limit) const {
    pollfd one{.fd = descriptor_, .events = events, .revents = 0};
    return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
  }
  bool is_readable(milliseconds limit) const { return is_ready(POLLIN, limit); }

  Arrival receive(milliseconds limit) {
    if (limit.count() > 0 && !is_readable(limit)) return Arrival::kSilence;
    std::array<char, 16384> bytes;
    const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Arrival::kSilence;
    if (count <= 0) return Arrival::kClosed;
    buffer_.append(bytes.data(), static_cast<size_t>(count));
    return Arrival::kBytes;
  }

  // More bytes of a request. False: the client has gone. Throws HttpError: it is silent.
  bool receive_until(Clock::time_point end) {
    const Arrival arrival =
        receive(std::max(milliseconds{1}, std::min(options_.silence, left(end))));
    if (arrival == Arrival::kSilence || Clock::now() >= end) {
      throw HttpError(408, "the request has not arrived as a whole");
    }
    return arrival == Arrival::kBytes;
  }

  // The end of the head's last line, and the begin of the body.
  bool find_head_end(size_t from, size_t& head_end, size_t& next) const {
    for (size_t at = buffer_.find('\n', from); at != std::string::npos;
         at = buffer_.find('\n', at + 1)) {
      size_t after = at + 1;
      if (after < buffer_.size() && buffer_[after] == '\r') ++after;
      if (after >= buffer_.size() || buffer_[after] != '\n') continue;
      head_end = at;
      next = after + 1;
      return true;
    }
    return false;
  }

  bool read_sized(HttpRequest& request, const BodyFraming& framing, Clock::time_point end) {
    while (buffer_.size() < framing.size_bytes) {
      if (!receive_until(end)) return false;
    }
    request.body = buffer_.substr(0, framing.size_bytes);
    buffer_.erase(0, framing.size_bytes);
    return true;
  }

  bool read_chunks(HttpRequest& request, Clock::time_point end) {
    ChunkedBody body(options_.max_body_bytes);
    for (;;) {
      buffer_.erase(0, body.add(buffer_));
      if (body.is_complete()) break;
      if (!receive_until(end)) return false;
    }
    request.body = body.take();
    return true;
  }

  int descriptor_;
  const HttpServerOptions& options_;
  const std::atomic<bool>& stops_;
  std::string buffer_;
};

}  // namespace

class HttpServer::Body {
 public:
  Body(const HttpServerOptions& options, Answer answer, Refuse refuse)
      : options_(options),
        answer_(std::move(answer)),
        refuse_(std::move(refuse)),
        listener_(listen_on(options.host, options.port)),
        address_(transport::local_address(listener_)),
        url_("http://" + address_.text()) {}
  ~Body() {
    stops_ = true;
    cut_all();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_.empty(); });
  }

  const std::string& url() const { return url_; }
  bool is_loopback() const { return address_.is_loopback(); }
  int connections() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(open_.size());
  }

  void serve(const std::function<bool()>& is_asked_to_stop, const std::function<void()>& stopping) {
    while (!is_asked_to_stop()) {
      pollfd one{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (!has_room() || ::poll(&one, 1, static_cast<int>(kTurn.count())) > 0) accept_all();
    }
    stopping();
    accept_all();
    listener_.close();
    stops_ = true;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, options_.grace, [&] { return open_.empty(); })) return;
    log_warning("{} connections have not ended in {} s: they are cut", open_.size(),
                options_.grace.count() / 1000);
    lock.unlock();
    cut_all();
  }

 private:
  // Waits a while for room if there is none: clients queue in the kernel meanwhile.
  bool has_room() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(
        lock, kTurn, [&] { return static_cast<int>(open_.size()) < options_.max_connections; });
  }

  void accept_all() {
    while (connections() < options_.max_connections) {
      Socket client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.is_open()) return wait_if_exhausted(errno);
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      start(std::move(client));
    }
  }

  // Without descriptors or memory accept() fails at once, again and again.
  static void wait_if_exhausted(int error) {
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      std::this_thread::sleep_for(kTurn);
    }
  }

  void start(Socket client) {
    const int descriptor = client.get();
    {
      const std::lock_guard lock(mutex_);
      open_.insert(descriptor);
    }
    try {
      std::thread([this, socket = std::move(client)]() mutable {
        run(std::move(socket));
      }).detach();
    } catch (const std::system_error&) {  // no more threads
      forget(descriptor, [] {});
    }
  }

  // `close` is called where cut_all() no longer knows the descriptor, which another connection may
  // get at once.
  template <typename Close>
  void forget(int descriptor, const Close& close) {
    const std::lock_guard lock(mutex_);
    open_.erase(descriptor);
    close();
    changed_.notify_all();
  }

  void run(Socket socket) {
    try {
      talk(socket.get());
    } catch (const std::exception& problem) {
      log_warning("a connection was closed: {}", failure_text(problem));
    }
    forget(socket.get(), [&] { socket.close(); });
  }

  void talk(int descriptor) {
    Connection connection(descriptor, options_, stops_);
    while (connection.wait_for_request()) {
      HttpRequest request;
      try {
        if (!connection.read_request(request)) return;
      } catch (const HttpError& error) {
        connection.send(
            reply_text(refuse_(request.path, error.status(), error.what()), true, true));
        return connection.drain();
      }
      request.is_gone = [&] { return connection.is_gone(); };
      const HttpReply reply = answer_(request);
      const bool closes = !request.keeps_alive || stops_;
      if (!connection.send(reply_text(reply, closes, request.method != "HEAD"))) return;
      if (closes) return connection.drain();
    }
  }

  void cut_all() {
    const std::lock_guard lock(mutex_);
    for (const int descriptor : open_) ::shutdown(descriptor, SHUT_RDWR);
  }

  HttpServerOptions options_;
  Answer answer_;
  Refuse refuse_;
  Socket listener_;
  transport::TcpAddress address_;
  std::string url_;
  std::atomic<bool> stops_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> open_;  // descriptors of connections
};

HttpServer::HttpServer(const HttpServerOptions& options, Answer answer, Refuse refuse)
    : body_(std::make_unique<Body>(options, std::move(answer), std::move(refuse))) {}

HttpServer::~HttpServer() = default;

const std::string& HttpServer::url() const {
  return body_->url();
}

bool HttpServer::is_loopback() const {
  return body_->is_loopback();
}

int HttpServer::connections() const {
  return body_->connections();
}

void HttpServer::serve(const std::function<bool()>& is_asked_to_stop,
                       const std::function<void()>& stopping) {
  body_->serve(is_asked_to_stop, stopping);
}

}  // namespace onebit::serve
