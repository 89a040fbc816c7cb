// Starts the ranks of an attempt on their hosts without MPI: they connect by TCP. The launcher
// calls start_over_tcp(), and the process that it starts on each host calls run_host_ranks().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/host_list.h"

namespace onebit::cluster {

// The process on a host starts the ranks there, and ends them when the launcher's end of its input
// closes. It prints one line: where ranks may meet if rank 0 is on this host. Then it reads
// everything else from one line of JSON, so that no variable is part of a command line.

// What the launcher tells a host.
struct HostRanks {
  int first = 0, ranks = 1, world = 1, host = 0;
  std::string addresses;               // of rank 0's host, with commas
  int port = 0;                        // free there
  std::vector<std::string> variables;  // "NAME=value"

  // The variables of the N-th rank of the host.
  std::vector<std::string> variables_of(int rank) const;
};

struct MeetingPlace {
  std::string addresses;
  int port = 0;
};

std::string line_of(const HostRanks& ranks);
std::optional<HostRanks> parse_host_ranks(std::string_view line);
std::string line_of(const MeetingPlace& place);
// Empty if the line is another one, for example a greeting of the host.
std::optional<MeetingPlace> parse_meeting_place(std::string_view line);
// A line that passes a signal on.
std::string signal_line(int number);

// Runs `command` as every rank of this host. Returns 0 or the first status that is not.
int run_host_ranks(const std::string& interface, const Words& command);

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
