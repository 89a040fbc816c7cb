// Starts the ranks of an attempt on their hosts without MPI: they connect by TCP. The counterpart
// on each host is host_ranks.h.
#pragma once

#include <string>
#include <vector>

#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/program/cluster/shell_command_line.h"

namespace onebit::cluster {

struct TcpStartOptions {
  std::vector<std::string> hosts;  // "NAME:RANKS", in the order of the ranks
  Agent agent;
  std::string program;               // onebit, on every host
  std::string folder;                // working directory
  std::string interface;             // empty: all
  std::vector<std::string> exports;  // names of variables of this process that the ranks get
  Words command;                     // of a rank
};

// Runs until all ranks have ended, and returns 0 or the first status that is not. Lines of the
// ranks go to this process's streams, and its signals to the ranks. Error: a host cannot be
// reached.
int start_over_tcp(const TcpStartOptions& options);

}  // namespace onebit::cluster
