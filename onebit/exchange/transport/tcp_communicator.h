// Ranks as processes that are connected by TCP sockets of their own: several machines need nothing
// but onebit. What a frame is: tcp_protocol.h. How the ranks find each other: tcp_rendezvous.h.
#pragma once

#include <memory>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/transport/tcp_options.h"

namespace onebit::transport {

// The communicator of all ranks. Collective: returns when every rank is connected with every other.
// When a rank fails, by abort() or because its process has ended, the others get PeerError with its
// number and, if it said nothing, its host. Unlike under MPI, abort() ends no process: it throws.
// Errors: the errors of tcp_rendezvous.h.
std::unique_ptr<comm::Communicator> make_tcp_world(const TcpOptions& options);

}  // namespace onebit::transport
