// What a rank needs to know to find the others over TCP. Filled from the environment, or by a
// program that embeds onebit.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace onebit::transport {

struct TcpOptions {
  int rank = 0, world_size = 1;
  // The number of this rank on its machine, and its machine. If empty, comparing the ranks finds
  // it.
  std::optional<int> local_rank, group;
  bool on_one_machine = false;  // all ranks are, and then listen on the loopback interface

  std::string master;      // a name or address of rank 0, which listens there
  int port = 0;            // and at this port until all ranks have come
  std::string interfaces;  // names, addresses or subnets, with commas. Empty: the master's
  int first_port = 0, last_port = 0;  // of the ranks, or 0 for ports of the kernel

  std::string run, token;      // connections of others are refused
  double start_seconds = 300;  // for all ranks to come
  // Called at least every second while this rank waits for others to come. What it throws ends the
  // waiting.
  std::function<void()> check = [] {};
  double silent_seconds = 30;  // a peer that acknowledges nothing for longer is lost
};

// The options of a rank that was started with torchrun's variables RANK, WORLD_SIZE, MASTER_ADDR
// and MASTER_PORT. `rank` and `world_size` may be another starter's. Errors: a variable is missing
// or malformed.
TcpOptions tcp_options_from_environment(int rank, int world_size);

// Whether the environment has MASTER_ADDR and MASTER_PORT.
bool has_tcp_master();

}  // namespace onebit::transport
