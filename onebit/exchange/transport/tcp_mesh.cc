#include "onebit/exchange/transport/tcp_mesh.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::transport {

namespace {

constexpr size_t kBytesAtOnce = size_t{1} << 20;  // then it is the turn of the next connection

}  // namespace

TcpConnection::TcpConnection(Socket socket, int rank, int peer, int watcher, TcpStatus& status)
    : socket_(std::move(socket)),
      peer_(peer),
      watcher_(watcher),
      sender_(rank, peer, status),
      receiver_(rank, peer, status,
                [this](const TcpFrame& frame) { sender_.peer_is_ready(frame); }) {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<uint32_t>(peer)}};
  require_call(::epoll_ctl(watcher_, EPOLL_CTL_ADD, socket_.get(), &event),
               "cannot watch the connection to rank {}", peer);
}

void TcpConnection::watch(bool for_writing) {
  if (closed_ || watches_writing_ == for_writing) return;
  watches_writing_ = for_writing;
  epoll_event event{.events = static_cast<uint32_t>(for_writing ? EPOLLIN | EPOLLOUT : EPOLLIN),
                    .data = {.u32 = static_cast<uint32_t>(peer_)}};
  ::epoll_ctl(watcher_, EPOLL_CTL_MOD, socket_.get(), &event);
}

void TcpConnection::flush() {
  if (closed_) return;
  sender_.flush(socket_.get());
  is_flushed_ = sender_.is_idle();
  watch(!sender_.is_idle());
  if (says_farewell_ && sender_.is_idle()) ::shutdown(socket_.get(), SHUT_WR);
}

void TcpConnection::post(const TcpKey& key, const std::shared_ptr<TcpTransfer>& transfer,
                         std::span<const std::byte> send, std::span<std::byte> receive) {
  const std::lock_guard lock(mutex_);
  if (!receive.empty()) {
    receiver_.expect(key, transfer, receive);
    sender_.ask_for(key, transfer->operation, receive.size());
  }
  if (!send.empty()) sender_.send(key, transfer, send);
  flush();
}

void TcpConnection::withdraw(const TcpTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  sender_.withdraw(transfer);
  receiver_.withdraw(transfer);
}

void TcpConnection::announce_failure(int failed_rank, const std::string& message) {
  const std::lock_guard lock(mutex_);
  sender_.announce_failure(failed_rank, message);
  flush();
}

void TcpConnection::say_farewell() {
  const std::lock_guard lock(mutex_);
  if (says_farewell_) return;
  sender_.say_farewell();
  says_farewell_ = true;
  flush();
}

TcpConnection::News TcpConnection::close(const std::string& reason) {
  ::epoll_ctl(watcher_, EPOLL_CTL_DEL, socket_.get(), nullptr);
  closed_ = true;
  News news{.is_closed = true, .failure = receiver_.failure()};
  if (!receiver_.peer_has_left()) news.lost = reason;
  return news;
}

TcpConnection::News TcpConnection::read() {
  const std::lock_guard lock(mutex_);
  if (closed_) return {};
  for (size_t taken = 0; taken < kBytesAtOnce;) {
    const std::span<std::byte> space = receiver_.space();
    const ssize_t count = ::recv(socket_.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count < 0) return close(reason_of(errno));
    if (count == 0) return close("it closed the connection");
    try {
      receiver_.arrived(static_cast<size_t>(count));
    } catch (const Error& error) {
      return close(fmt::format("it {}", error.what()));
    }
    taken += static_cast<size_t>(count);
    if (static_cast<size_t>(count) < space.size()) break;  // no more is there
  }
  flush();  // what the peer has become ready for
  return {.failure = receiver_.failure()};
}

void TcpConnection::write() {
  const std::lock_guard lock(mutex_);
  flush();
}

namespace {

constexpr double kFarewellSeconds = 2;  // for the other ranks to end, too
constexpr double kFlushSeconds = 1;     // for the news of a failure
// An error in a recipe occurs on every rank: rank 0 reports it, and the others wait briefly for it.
constexpr double kDeferSeconds = 1;
constexpr int kEventsAtOnce = 64;

}  // namespace

TcpMesh::TcpMesh(int rank, std::vector<TcpPeer> peers)
    : rank_(rank),
      peers_(std::move(peers)),
      status_(rank),
      watcher_(::epoll_create1(EPOLL_CLOEXEC)),
      end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      exceptions_at_start_(std::uncaught_exceptions()) {
  require_call(watcher_.get(), "cannot watch connections");
  require_call(end_.get(), "cannot make an event");
  epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<uint32_t>(world_size())}};
  require_call(::epoll_ctl(watcher_.get(), EPOLL_CTL_ADD, end_.get(), &event),
               "cannot watch an event");
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer == rank) {
      connections_.emplace_back();
      continue;
    }
    connections_.push_back(std::make_unique<TcpConnection>(
        std::move(peers_[static_cast<size_t>(peer)].socket), rank, peer, watcher_.get(), status_));
  }
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TcpMesh::~TcpMesh() {
  const auto all = [this](auto is) {
    return std::ranges::all_of(connections_, [&](const auto& one) { return !one || is(*one); });
  };
  if (std::uncaught_exceptions() > exceptions_at_start_ && !status_.has_failed()) {
    fail_all(rank_, "it ended by an error");
  }
  is_ending_ = true;
  if (status_.has_failed()) {
    // The others also hear of a rank that only this one has missed.
    const auto failure = status_.failure();
    for_all([&](TcpConnection& one) { one.announce_failure(failure.first, failure.second); });
    status_.wait_for(kFlushSeconds,
                     [&] { return all([](TcpConnection& one) { return one.is_flushed(); }); });
  } else {
    for_all([](TcpConnection& one) { one.say_farewell(); });
    status_.wait_for(kFarewellSeconds,
                     [&] { return all([](TcpConnection& one) { return one.is_closed(); }); });
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(end_.get(), &one, sizeof one);
  thread_.join();
}

template <typename Body>
void TcpMesh::for_all(const Body& body) {
  for (const auto& connection : connections_) {
    if (connection != nullptr) body(*connection);
  }
}

void TcpMesh::withdraw(const TcpTransfer& transfer) {
  for_all([&](TcpConnection& one) { one.withdraw(transfer); });
}

void TcpMesh::leave() {
  has_left_ = true;
  for_all([](TcpConnection& one) { one.say_farewell(); });
}

void TcpMesh::fail_all(int failed_rank, const std::string& message) {
  if (!status_.set_failure(failed_rank, message)) return;
  // Also for the failure of another rank: those that hear of it only by the end of this one would
  // take this one for the first.
  for_all([&](TcpConnection& one) { one.announce_failure(failed_rank, message); });
}

void TcpMesh::fail_own(const std::string& message) {
  if (rank_ == 0 || !status_.wait_for_failure(kDeferSeconds)) fail_all(rank_, message);
}

void TcpMesh::serve(int peer, uint32_t events) {
  TcpConnection& connection = *connections_[static_cast<size_t>(peer)];
  if ((events & EPOLLOUT) != 0) connection.write();
  if ((events & ~static_cast<uint32_t>(EPOLLOUT)) == 0) return;
  const TcpConnection::News news = connection.read();
  if (news.failure && news.failure->rank < world_size()) {
    fail_all(news.failure->rank, news.failure->message);
  }
  if (!news.lost.empty()) {
    fail_all(peer, fmt::format("its process on {} ended, or cannot be reached any more ({})",
                               peers_[static_cast<size_t>(peer)].host, news.lost));
  }
}

void TcpMesh::run() {
  pthread_setname_np(pthread_self(), "onebit-tcp");
  std::array<epoll_event, kEventsAtOnce> events{};
  for (;;) {
    const int count = ::epoll_wait(watcher_.get(), events.data(), kEventsAtOnce, -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u32 == static_cast<uint32_t>(world_size())) return;
      serve(static_cast<int>(event.data.u32), event.events);
    }
    // The destructor waits until everything is sent, or all have closed their connections.
    if (is_ending_) status_.wake();
  }
}

}  // namespace onebit::transport
