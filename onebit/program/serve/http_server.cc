#include "onebit/program/serve/http_server.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "onebit/exchange/transport/tcp_addresses.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/socket.h"
#include "onebit/program/serve/waiting_connections.h"

namespace onebit::serve {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{50};  // between two looks at whether the server is asked to stop
// A thread that has been of no use for so long ends, except the last one.
constexpr milliseconds kUnused{10'000};
// For how long a connection without a request stays open after stop: a client that has just got an
// answer may have sent its next request.
constexpr milliseconds kLastRequest{500};
// And the least time for which it stays open if others wait for room, and that of one which sends a
// part of a request and pauses: what is lost on the way is sent again after less.
constexpr milliseconds kNextRequest{300}, kPause{1000};

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

}  // namespace

class HttpServer::Body {
 public:
  Body(const HttpServerOptions& options, Answer answer, Refuse refuse)
      : options_(options),
        answer_(std::move(answer)),
        refuse_(std::move(refuse)),
        listener_(listen_on(options.host, options.port)),
        address_(transport::local_address(listener_)),
        url_("http://" + address_.text()),
        waiting_(options.idle,
                 static_cast<size_t>(options.max_requests) * options.limits.max_body_bytes) {
    const std::lock_guard lock(mutex_);
    start_thread();
    require(!threads_.empty(), "the system allows no more threads");
  }
  ~Body() {
    stops_ = true;
    cut_all();
    waiting_.end();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return threads_.empty(); });
    lock.unlock();
    join_ended();
  }

  const std::string& url() const { return url_; }
  bool is_loopback() const { return address_.is_loopback(); }
  int connections() const { return connections_; }

  void serve(const std::function<bool()>& is_asked_to_stop, const std::function<void()>& stopping) {
    while (!is_asked_to_stop()) {
      if (is_client_there(kLook)) accept_some();
      look_after_others();
    }
    stops_ = true;  // replies from now on end their connections
    stopping();
    accept_some();
    listener_.close();
    waiting_.shorten(kLastRequest);
    const Clock::time_point end = Clock::now() + options_.grace;
    while (connections_ > 0 && Clock::now() < end) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLook, [&] { return connections_ == 0; });
      lock.unlock();
      look_after_others();
    }
    if (connections_ == 0) return;
    log_warning("{} connections have not ended in {} s: they are cut", connections_.load(),
                options_.grace.count() / 1000);
    cut_all();
  }

 private:
  using Threads = std::list<std::thread>;

  bool is_client_there(milliseconds limit) const {
    pollfd one{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
  }
  bool is_full() const { return connections_ >= options_.max_connections; }

  // Not more at once: is_asked_to_stop() is asked in between.
  void accept_some() {
    constexpr int kMost = 256;
    for (int i = 0; i < kMost && is_client_there(milliseconds{0}); ++i) {
      if (is_full() && !make_room()) return;
      Socket client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.is_open()) return wait_if_exhausted(errno);
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++connections_;
      keep(std::make_unique<HttpConnection>(std::move(client), options_.limits));
    }
  }

  // Several at once, as more clients may follow. If none is idle, clients queue in the kernel.
  bool make_room() {
    waiting_.end_oldest(1 + static_cast<size_t>(options_.max_connections) / 64, kNextRequest,
                        kPause);
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLook, [&] { return !is_full(); });
  }

  // Without descriptors or memory accept() fails at once, again and again.
  void wait_if_exhausted(int error) {
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      waiting_.end_oldest(1, kNextRequest, kPause);
      std::this_thread::sleep_for(kLook);
    }
  }

  void look_after_others() {
    waiting_.end_late();
    join_ended();
  }

  void join_ended() {
    Threads ended;
    {
      const std::lock_guard lock(mutex_);
      ended.swap(ended_);
    }
    for (std::thread& one : ended) one.join();
  }

  // The mutex is held, which the thread needs to end: it is in the list by then.
  void start_thread() {
    const auto place = threads_.emplace(threads_.end());
    try {
      *place = std::thread([this, place] { work(place); });
      ++unused_threads_;
    } catch (const std::system_error&) {  // no more threads
      threads_.erase(place);
    }
  }

  void work(Threads::iterator place) {
    for (;;) {
      std::optional<WaitingConnections::Taken> taken = waiting_.take(kUnused);
      if (taken) {
        attend(std::move(*taken));
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (unused_threads_ == 1 && !is_cut_) continue;
      --unused_threads_;
      ended_.splice(ended_.end(), threads_, place);
      changed_.notify_all();
      return;
    }
  }

  void attend(WaitingConnections::Taken taken) {
    if (!begin_use(*taken.connection)) return close(std::move(taken.connection));
    bool stays = false;
    try {
      stays = talk(*taken.connection, taken.shall_end);
    } catch (const std::exception& problem) {
      log_warning("a connection was closed: {}", failure_text(problem));
    }
    end_use(*taken.connection);
    if (stays) {
      keep(std::move(taken.connection));
    } else {
      close(std::move(taken.connection));
    }
  }

  // False: all connections have been cut, except this one.
  bool begin_use(HttpConnection& connection) {
    const std::lock_guard lock(mutex_);
    if (is_cut_) return false;
    --unused_threads_;
    used_.insert(&connection);
    // There is always one that waits for the next request.
    if (unused_threads_ == 0 && std::ssize(threads_) < options_.max_requests) start_thread();
    return true;
  }
  void end_use(HttpConnection& connection) {
    const std::lock_guard lock(mutex_);
    used_.erase(&connection);
    ++unused_threads_;
  }

  void keep(std::unique_ptr<HttpConnection> connection) {
    try {
      return waiting_.add(std::move(connection));
    } catch (const std::exception& problem) {
      log_warning("a connection was closed: {}", failure_text(problem));
    }
    count_closed();
  }
  void close(std::unique_ptr<HttpConnection> connection) {
    connection.reset();
    count_closed();
  }
  void count_closed() {
    const std::lock_guard lock(mutex_);
    --connections_;
    changed_.notify_all();
  }

  // Answers the requests that have arrived. Returns whether the client may send more.
  bool talk(HttpConnection& connection, bool shall_end) {
    bool has_arrived = false;
    try {
      for (;;) {
        if (std::optional<HttpRequest> request = connection.take_request()) {
          if (!reply_to(connection, *request)) return false;
          shall_end = false;
          continue;
        }
        const HttpConnection::Arrival arrival = connection.look();
        if (arrival == HttpConnection::Arrival::kClosed) return false;
        if (arrival == HttpConnection::Arrival::kNothing) break;
        has_arrived = true;
      }
      if (!connection.is_begun()) return !shall_end;
      if (waiting_.holds_too_much()) throw HttpError(503, "too many requests arrive at once");
      const bool is_late = Clock::now() >= connection.is_late_at();
      if (!is_late && (!shall_end || has_arrived)) return true;
      throw HttpError(408, "the request has not arrived as a whole");
    } catch (const HttpError& error) {
      // Nothing of a client that has been silent is unread.
      const bool is_sent = connection.send(refuse_(connection.path(), error), true, true);
      if (is_sent && has_arrived) connection.drain();
      return false;
    }
  }

  bool reply_to(HttpConnection& connection, HttpRequest& request) {
    request.is_gone = [&] { return connection.is_gone(); };
    const HttpReply reply = answer_(request);
    const bool closes = !request.keeps_alive || stops_ || is_full();
    if (!connection.send(reply, closes, request.method != "HEAD")) return false;
    if (closes) connection.drain();
    return !closes;
  }

  void cut_all() {
    const std::lock_guard lock(mutex_);
    is_cut_ = true;
    for (const HttpConnection* one : used_) ::shutdown(one->descriptor(), SHUT_RDWR);
  }

  HttpServerOptions options_;
  Answer answer_;
  Refuse refuse_;
  Socket listener_;
  transport::TcpAddress address_;
  std::string url_;
  WaitingConnections waiting_;
  std::atomic<bool> stops_ = false;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;  // connections and threads become fewer
  std::set<HttpConnection*> used_;   // by a thread
  bool is_cut_ = false;
  int unused_threads_ = 0;   // wait for a request
  Threads threads_, ended_;  // ended_: to be joined
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
