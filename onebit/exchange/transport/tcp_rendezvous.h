// How ranks find each other over TCP: all tell rank 0 where they listen, get the list of all, and
// connect in pairs, the higher rank of a pair to the lower one. Afterwards nobody listens.
#pragma once

#include <string>
#include <vector>

#include "onebit/exchange/transport/tcp_options.h"
#include "onebit/ground/base/socket.h"

namespace onebit::transport {

// A rank of the world, by number.
struct TcpPeer {
  std::string host;
  Socket socket;  // connected, and not blocking, but closed for this rank itself
};

struct TcpWorld {
  std::vector<TcpPeer> peers;     // [world_size]
  std::vector<int> node_of_rank;  // numbers of machines
  int local_rank = 0;
};

// Collective. Errors, on every rank, which name the rank and its host: a rank does not come in
// time, or ends, two have the same number, ranks disagree about their count or are of different
// versions, one cannot reach another. Strangers and ranks of other runs are refused with a warning.
TcpWorld meet(const TcpOptions& options);

}  // namespace onebit::transport
