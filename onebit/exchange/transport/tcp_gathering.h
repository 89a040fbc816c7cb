// What rank 0 does while ranks find each other over TCP (tcp_rendezvous.h): waits for all, sends
// each the list of all, and gives the start when all are connected.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/exchange/transport/tcp_door.h"
#include "onebit/exchange/transport/tcp_options.h"
#include "onebit/ground/base/json.h"

namespace onebit::transport {

class TcpGathering {
 public:
  TcpGathering(const TcpOptions& options, TcpIdentity identity)
      : options_(options),
        identity_(std::move(identity)),
        ranks_(static_cast<size_t>(options.world_size)) {}

  // Returns the list of all ranks, which every rank has been sent. `own` is this rank's hello.
  Json gather(TcpDoor& door, const Json& own);
  // The sockets of all other ranks, which have something to read when a rank is connected or gone.
  std::vector<int> sockets() const;
  // Reads what the ranks have said. Error: one has failed or gone.
  void listen();
  bool all_are_connected() const;
  void start();
  // Tells all ranks why the run cannot start.
  void fail_all(const std::string& reason);

 private:
  struct Rank {
    Json hello;
    Socket socket;
    TcpNoteReader reader{{}, false};
    bool is_connected = false;

    bool has_come() const { return socket.is_open(); }
  };

  void take(TcpDoor::Visitor visitor);
  std::string name_of(int rank) const;
  std::string missing() const;
  Json list(const Json& own) const;
  template <typename Body>
  void for_all(const Body& body);

  const TcpOptions& options_;
  TcpIdentity identity_;
  std::vector<Rank> ranks_;  // [world_size], nothing at this rank's place
};

}  // namespace onebit::transport
