// A launcher for run(): ranks of this machine that TCP connects, with the variables of torchrun.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace onebit {

// A port of the loopback interface that nobody uses.
inline int unused_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  socklen_t length = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(socket);
  return ntohs(address.sin_port);
}

// Fails if one of the ranks does.
inline std::string over_tcp(int ranks) {
  return fmt::format(
      "WORLD_SIZE={} LOCAL_WORLD_SIZE={} MASTER_ADDR=127.0.0.1 MASTER_PORT={} sh -c 'for rank in "
      "$(seq 0 {}); do RANK=$rank LOCAL_RANK=$rank \"$@\" & pids=\"$pids $!\"; done; status=0; for "
      "pid in $pids; do wait $pid || status=1; done; exit $status' ranks ",
      ranks, ranks, unused_port(), ranks - 1);
}

}  // namespace onebit
