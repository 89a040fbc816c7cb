// Listens where ranks would, and discards what others send, for link_client.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/socket.h"
#include "onebit/program/cluster/mpi_ports.h"

namespace onebit::cluster {

// On a connection the server first sends its token (kTokenBytes). A message is its length
// (kLengthBytes, big-endian) followed by that many bytes. The server answers each complete message
// with one byte.
inline constexpr size_t kTokenBytes = 16, kLengthBytes = 8;
inline constexpr size_t kMaxConnections = 1024;

class LinkServer {
 public:
  // Listens at the first port of every range that is free on all of `addresses` (IPv4, or empty: on
  // every address of this machine), in a thread of its own. Others may connect too: at most
  // kMaxConnections are open at a time, and one that is silent for some seconds is closed. Error: a
  // range without a free port.
  explicit LinkServer(std::span<const PortRange> ranges,
                      const std::vector<std::string>& addresses = {});
  ~LinkServer();
  LinkServer(const LinkServer&) = delete;
  LinkServer& operator=(const LinkServer&) = delete;

  const std::string& token() const { return token_; }
  const std::vector<int>& ports() const { return ports_; }  // [ranges]

 private:
  struct Connection {
    Socket socket;
    std::string header = {};
    uint64_t left = 0;  // bytes of the current message still to come
    Stopwatch silent = {};
  };

  void serve(const std::stop_token& stop);
  void accept(const Socket& listener);
  void close_silent();
  // False once the connection has ended.
  bool swallow(Connection& connection);

  std::string token_;
  std::vector<Socket> listeners_;  // [ranges * addresses]
  std::vector<int> ports_;
  std::vector<Connection> connections_;
  bool is_full_ = false;  // no connection can be accepted until one has been closed
  std::vector<char> buffer_;
  std::jthread thread_;
};

}  // namespace onebit::cluster
