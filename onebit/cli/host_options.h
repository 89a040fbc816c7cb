// The hosts of a command, the same options for `onebit launch` and `onebit doctor`.
#pragma once

#include <string>

#include "onebit/cli/command_line.h"
#include "onebit/cluster/agent.h"
#include "onebit/cluster/host_list.h"

namespace onebit::cli {

struct HostOptions {
  std::string hostfile, hosts, include, exclude, agent, program;
  int ranks_per_host = 0;

  bool any() const { return !hostfile.empty() || !hosts.empty(); }
};

// --hostfile, --hosts, --include, --exclude, --agent, --program.
void add_host_options(Command command, HostOptions& options);

struct ChosenHosts {
  cluster::Hosts hosts;
  std::string origin;  // "hosts", "--hosts", "Slurm job 17", "this machine"
  int threads = 0;     // of a rank, where a batch system says so
  bool in_slurm = false;
};

// The hosts that are named; else those of the batch system's job; else this machine, with a rank
// for every memory node. Errors: everything that is wrong with the list, as one table.
ChosenHosts choose_hosts(const HostOptions& options);

cluster::Agent agent_of(const HostOptions& options, bool in_slurm);
// The program on the hosts: --program, or the path of this one.
std::string program_of(const HostOptions& options);

}  // namespace onebit::cli
