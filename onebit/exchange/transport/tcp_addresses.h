// Addresses and sockets of TCP, IPv4 and IPv6.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/socket.h"

namespace onebit::transport {

struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  int family() const { return bytes.ss_family; }
  int port() const;
  void set_port(int port);
  std::string host() const;  // "10.0.0.1", "fd00::1"
  std::string text() const;  // "10.0.0.1:29500", "[fd00::1]:29500"
  bool is_loopback() const;
  // Every address of this machine, of the same family.
  TcpAddress any() const;
};

// The addresses of a name, or just "10.0.0.1" or "fd00::1". Error: the name has none.
std::vector<TcpAddress> resolve(const std::string& host, int port);
// The addresses of this machine's interfaces that are up. `chosen` selects some by name ("eth1"),
// address or subnet ("10.0.0.0/24"), separated by commas. Empty: all but loopback, unless there are
// no others. Errors: nothing matches (the message lists what there is), or a malformed subnet.
std::vector<TcpAddress> own_addresses(const std::string& chosen);

TcpAddress local_address(const Socket& socket);
TcpAddress peer_address(const Socket& socket);

// A socket that listens and does not block. It is closed, with errno set, if that is not possible.
Socket listen_at(const TcpAddress& address);
// The same at the first free port of a range, or with 0 at one of the kernel. Error: none is free.
Socket listen_in(TcpAddress address, int first_port, int last_port);
// A socket on its way to be connected. It is closed, with errno set, if that failed at once.
Socket begin_connecting(const TcpAddress& address);
// Waits for it. Returns errno, 0 if it is connected, ETIMEDOUT after `seconds`.
int finish_connecting(const Socket& socket, double seconds);

// Small messages leave at once. A peer that acknowledges nothing for `silent_seconds` is lost.
void set_tcp_options(const Socket& socket, double silent_seconds);

}  // namespace onebit::transport
