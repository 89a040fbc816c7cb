#include "onebit/exchange/comm/tcp_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::comm {
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

}  // namespace onebit::comm
