#include "onebit/program/cluster/link_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"

namespace onebit::cluster {

namespace {

constexpr int kTickMilliseconds = 50;
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int kBacklog = 1024;           // all hosts connect at once
constexpr double kPatienceSeconds = 15;  // longer than a client waits between two messages
constexpr int kPortTries = 20;           // chosen by the kernel for the first address only

using Addresses = std::vector<in_addr>;

Addresses addresses_from(const std::vector<std::string>& texts) {
  Addresses addresses;
  for (const std::string& text : texts) {
    require(::inet_pton(AF_INET, text.c_str(), &addresses.emplace_back()) == 1,
            "{}: is not an IPv4 address", text);
  }
  if (addresses.empty()) addresses.push_back({.s_addr = htonl(INADDR_ANY)});
  return addresses;
}

// A closed socket if the port is taken.
Socket listening_at(in_addr where, int port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  require_call(socket.is_open(), "a socket cannot be opened");
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = where;
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

// Listeners at one port on all addresses. Empty if it is taken on one of them.
std::vector<Socket> listening_on_all(const Addresses& addresses, int port) {
  std::vector<Socket> sockets;
  for (const in_addr address : addresses) {
    sockets.push_back(listening_at(address, sockets.empty() ? port : port_of(sockets[0])));
    if (!sockets.back().is_open()) return {};
  }
  return sockets;
}

std::vector<Socket> listening_in(const PortRange& range, const Addresses& addresses) {
  const int tries = range.first == 0 ? kPortTries : range.last - range.first + 1;
  for (int i = 0; i < tries; ++i) {
    auto sockets = listening_on_all(addresses, range.first == 0 ? 0 : range.first + i);
    if (!sockets.empty()) return sockets;
  }
  fail("all TCP ports {} are taken: choose another range, or end what uses them", range.text());
}

}  // namespace

LinkServer::LinkServer(std::span<const PortRange> ranges, const std::vector<std::string>& addresses)
    : token_(fmt::format("{:016x}", random_id())), buffer_(kBufferBytes) {
  const Addresses where = addresses_from(addresses);
  for (const PortRange& range : ranges) {
    for (Socket& listener : listening_in(range, where)) {
      if (ports_.size() * where.size() == listeners_.size()) ports_.push_back(port_of(listener));
      listeners_.push_back(std::move(listener));
    }
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

LinkServer::~LinkServer() = default;

void LinkServer::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> sources;
    for (const Connection& one : connections_) sources.push_back({one.socket.get(), POLLIN, 0});
    // Connections that cannot be accepted wait in the kernel. Listeners that stay readable
    // meanwhile would keep this thread busy.
    const size_t before = connections_.size();
    is_full_ = is_full_ || before >= kMaxConnections;
    if (!is_full_) {
      for (const Socket& listener : listeners_) sources.push_back({listener.get(), POLLIN, 0});
    }
    const int ready =
        ::poll(sources.data(), static_cast<nfds_t>(sources.size()), kTickMilliseconds);
    for (size_t i = 0; ready > 0 && i < before; ++i) {
      if (sources[i].revents == 0) continue;
      connections_[i].silent.restart();
      if (!swallow(connections_[i])) connections_[i].socket.close();
    }
    for (size_t i = before; ready > 0 && i < sources.size(); ++i) {
      if (sources[i].revents != 0) accept(listeners_[i - before]);
    }
    close_silent();
    if (ready <= 0 || connections_.size() < before) is_full_ = false;
  }
}

void LinkServer::accept(const Socket& listener) {
  while (connections_.size() < kMaxConnections) {
    Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      is_full_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return;
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // A new connection accepts these few bytes at once.
    if (::send(socket.get(), token_.data(), token_.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(token_.size())) {
      connections_.push_back({.socket = std::move(socket)});
    }
  }
}

void LinkServer::close_silent() {
  std::erase_if(connections_, [](const Connection& one) {
    return !one.socket.is_open() || one.silent.seconds() > kPatienceSeconds;
  });
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
