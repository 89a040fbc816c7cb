#include "onebit/program/serve/http_server.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
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

constexpr milliseconds kLook{50};   // between two looks at whether the server is asked to stop
constexpr milliseconds kTurn{500};  // between two looks of a connection at whether others wait
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

// What all connections are told.
struct Signals {
  Socket stop{::eventfd(0, EFD_CLOEXEC)};  // readable from stop on
  std::atomic<bool> stops = false;
  std::atomic<bool> is_crowded = false;  // others wait for a connection to end
};

// One client. Every wait has an end.
class Connection {
 public:
  Connection(int descriptor, const HttpServerOptions& options, const Signals& signals)
      : descriptor_(descriptor),
        options_(options),
        signals_(signals),
        reader_({.body_bytes = options.max_body_bytes}) {}

  // Waits for the first byte of a request. False: there is none.
  bool wait_for_request() {
    Clock::time_point end = Clock::now() + options_.idle;
    for (;;) {
      reader_takes();
      if (reader_.is_begun()) return true;
      if (signals_.stops) end = std::min(end, Clock::now() + kLastRequest);
      const Arrival arrival = receive(std::min(kTurn, left(end)), !signals_.stops);
      if (arrival == Arrival::kClosed) return false;
      if (arrival == Arrival::kBytes) continue;
      if (Clock::now() >= end || signals_.is_crowded) return false;
    }
  }

  // Reads the rest of the request. Throws HttpError. Nothing: the client has gone.
  std::optional<HttpRequest> read_request() {
    const Clock::time_point end = Clock::now() + options_.whole_request;
    while (!reader_.is_complete()) {
      if (reader_.takes_continue() && !send("HTTP/1.1 100 Continue\r\n\r\n")) return std::nullopt;
      const milliseconds limit = std::min(options_.silence, left(end));
      const Arrival arrival = receive(std::max(milliseconds{1}, limit), false);
      if (arrival == Arrival::kSilence || Clock::now() >= end) {
        throw HttpError(408, "the request has not arrived as a whole");
      }
      if (arrival == Arrival::kClosed) return std::nullopt;
      reader_takes();
    }
    return reader_.take();
  }
  const std::string& path() const { return reader_.path(); }

  bool send(std::string_view text) {
    const Clock::time_point end = Clock::now() + options_.whole_request;
    while (!text.empty()) {
      const ssize_t sent =
          ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        text.remove_prefix(static_cast<size_t>(sent));
        continue;
      }
      const bool is_broken = sent < 0 && errno != EAGAIN && errno != EINTR;
      if (is_broken || !is_writable(std::min(options_.silence, left(end)))) return false;
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
      if (receive(left(end), false) != Arrival::kBytes) return;
      most -= std::min(most, buffer_.size());
    }
  }

 private:
  static milliseconds left(Clock::time_point end) {
    return std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(end - Clock::now()));
  }

  void reader_takes() { buffer_.erase(0, reader_.add(buffer_)); }

  bool is_writable(milliseconds limit) const {
    pollfd one{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
  }

  // `until_stop`: stop ends the wait, too.
  Arrival receive(milliseconds limit, bool until_stop) {
    std::array<pollfd, 2> both{pollfd{.fd = descriptor_, .events = POLLIN, .revents = 0},
                               pollfd{.fd = signals_.stop.get(), .events = POLLIN, .revents = 0}};
    const nfds_t watched = until_stop ? 2 : 1;
    if (::poll(both.data(), watched, static_cast<int>(limit.count())) <= 0 ||
        both[0].revents == 0) {
      return Arrival::kSilence;
    }
    std::array<char, 16384> bytes;
    const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Arrival::kSilence;
    if (count <= 0) return Arrival::kClosed;
    buffer_.append(bytes.data(), static_cast<size_t>(count));
    return Arrival::kBytes;
  }

  int descriptor_;
  const HttpServerOptions& options_;
  const Signals& signals_;
  RequestReader reader_;
  std::string buffer_;  // bytes behind the request
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
    stop();
    cut_all();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_.empty(); });
    lock.unlock();
    join_ended();
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
      const bool is_asked = ::poll(&one, 1, static_cast<int>(kLook.count())) > 0;
      signals_.is_crowded = is_asked && !has_room();
      if (is_asked && !signals_.is_crowded) accept_all();
      join_ended();
    }
    signals_.stops = true;  // replies from now on end their connections
    stopping();
    accept_all();
    listener_.close();
    stop();
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, options_.grace, [&] { return open_.empty(); })) return;
    log_warning("{} connections have not ended in {} s: they are cut", open_.size(),
                options_.grace.count() / 1000);
    lock.unlock();
    cut_all();
  }

 private:
  struct Open {
    int descriptor = -1;
    std::thread thread;
  };
  using Place = std::list<Open>::iterator;

  // Waits a while for room if there is none: clients queue in the kernel meanwhile.
  bool has_room() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(
        lock, kLook, [&] { return static_cast<int>(open_.size()) < options_.max_connections; });
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
      std::this_thread::sleep_for(kLook);
    }
  }

  void start(Socket client) {
    const int descriptor = client.get();
    // The thread needs the lock to end, so it is in the list by then.
    const std::lock_guard lock(mutex_);
    const auto place = open_.emplace(open_.end());
    place->descriptor = descriptor;
    try {
      place->thread = std::thread(
          [this, place, socket = std::move(client)]() mutable { run(std::move(socket), place); });
    } catch (const std::system_error&) {  // no more threads
      open_.erase(place);
    }
  }

  void run(Socket socket, Place place) {
    try {
      talk(socket.get());
    } catch (const std::exception& problem) {
      log_warning("a connection was closed: {}", failure_text(problem));
    }
    const std::lock_guard lock(mutex_);
    // cut_all() no longer knows the descriptor, which another connection may get at once.
    ended_.splice(ended_.end(), open_, place);
    socket.close();
    changed_.notify_all();
  }

  void join_ended() {
    std::list<Open> ended;
    {
      const std::lock_guard lock(mutex_);
      ended.swap(ended_);
    }
    for (Open& one : ended) one.thread.join();
  }

  void talk(int descriptor) {
    Connection connection(descriptor, options_, signals_);
    try {
      while (connection.wait_for_request()) {
        std::optional<HttpRequest> request = connection.read_request();
        if (!request) return;
        request->is_gone = [&] { return connection.is_gone(); };
        const HttpReply reply = answer_(*request);
        const bool closes = !request->keeps_alive || signals_.stops;
        if (!connection.send(reply_text(reply, closes, request->method != "HEAD"))) return;
        if (closes) return connection.drain();
      }
    } catch (const HttpError& error) {
      const HttpReply reply = refuse_(connection.path(), error);
      if (connection.send(reply_text(reply, true, true))) connection.drain();
    }
  }

  void stop() {
    signals_.stops = true;
    ::eventfd_write(signals_.stop.get(), 1);
  }

  void cut_all() {
    const std::lock_guard lock(mutex_);
    for (const Open& one : open_) ::shutdown(one.descriptor, SHUT_RDWR);
  }

  HttpServerOptions options_;
  Answer answer_;
  Refuse refuse_;
  Socket listener_;
  transport::TcpAddress address_;
  std::string url_;
  Signals signals_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Open> open_, ended_;  // connections, and those whose thread is to be joined
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
