#include "onebit/cluster/link_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "onebit/base/error.h"
#include "onebit/base/random_id.h"

namespace onebit::cluster {
namespace {

constexpr int kTickMilliseconds = 50;
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int kBacklog = 1024;  // all hosts connect at once

// A closed socket if the port is taken.
Socket listening_at(int port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  require(socket.is_open(), "a socket cannot be opened: {}", std::strerror(errno));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    socket.close();
  }
  return socket;
}

int port_of(const Socket& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

Socket listening_in(const PortRange& range) {
  for (int port = range.first; port <= range.last; ++port) {
    Socket socket = listening_at(port);
    if (socket.is_open()) return socket;
  }
  fail("all TCP ports {} are taken: choose another range, or end what uses them", range.text());
}

}  // namespace

LinkServer::LinkServer(std::span<const PortRange> ranges)
    : token_(fmt::format("{:016x}", random_id())), buffer_(kBufferBytes) {
  for (const PortRange& range : ranges) {
    listeners_.push_back(listening_in(range));
    ports_.push_back(port_of(listeners_.back()));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

LinkServer::~LinkServer() = default;

void LinkServer::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> sources;
    for (const Socket& listener : listeners_) sources.push_back({listener.get(), POLLIN, 0});
    for (const Connection& one : connections_) sources.push_back({one.socket.get(), POLLIN, 0});
    if (::poll(sources.data(), static_cast<nfds_t>(sources.size()), kTickMilliseconds) <= 0) {
      continue;
    }
    const size_t listeners = listeners_.size(), before = connections_.size();
    for (size_t i = 0; i < before; ++i) {
      if (sources[listeners + i].revents == 0) continue;
      if (!swallow(connections_[i])) connections_[i].socket.close();
    }
    std::erase_if(connections_, [](const Connection& one) { return !one.socket.is_open(); });
    for (size_t i = 0; i < listeners; ++i) {
      if (sources[i].revents != 0) accept(listeners_[i]);
    }
  }
}

void LinkServer::accept(const Socket& listener) {
  for (;;) {
    Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // A new connection accepts these few bytes at once.
    if (::send(socket.get(), token_.data(), token_.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(token_.size())) {
      connections_.push_back({.socket = std::move(socket)});
    }
  }
}

bool LinkServer::swallow(Connection& connection) {
  const ssize_t count = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  std::string_view bytes(buffer_.data(), static_cast<size_t>(count));
  while (!bytes.empty()) {
    if (connection.header.size() < kLengthBytes) {
      const size_t part = std::min(bytes.size(), kLengthBytes - connection.header.size());
      connection.header += bytes.substr(0, part);
      bytes.remove_prefix(part);
      if (connection.header.size() < kLengthBytes) return true;
      connection.left = 0;
      for (const char byte : connection.header) {
        connection.left = (connection.left << 8U) | static_cast<unsigned char>(byte);
      }
    }
    const auto part =
        static_cast<size_t>(std::min(static_cast<uint64_t>(bytes.size()), connection.left));
    bytes.remove_prefix(part);
    connection.left -= part;
    if (connection.left > 0) continue;
    connection.header.clear();
    if (::send(connection.socket.get(), "", 1, MSG_NOSIGNAL) != 1) return false;
  }
  return true;
}

}  // namespace onebit::cluster
