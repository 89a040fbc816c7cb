// Listens where ranks would, and discards what others send, for link_client.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "onebit/cluster/mpi_ports.h"
#include "onebit/cluster/socket.h"

namespace onebit::cluster {

// On a connection the server first sends its token (kTokenBytes). A message is its length
// (kLengthBytes, big-endian) followed by that many bytes; the server answers each complete message
// with one byte.
inline constexpr size_t kTokenBytes = 16, kLengthBytes = 8;

class LinkServer {
 public:
  // Listens at the first free port of every range, on all addresses, in a thread of its own. Error:
  // a range without a free port.
  explicit LinkServer(std::span<const PortRange> ranges);
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
  };

  void serve(const std::stop_token& stop);
  void accept(const Socket& listener);
  // False once the connection has ended.
  bool swallow(Connection& connection);

  std::string token_;
  std::vector<Socket> listeners_;
  std::vector<int> ports_;
  std::vector<Connection> connections_;
  std::vector<char> buffer_;
  std::jthread thread_;
};

}  // namespace onebit::cluster
