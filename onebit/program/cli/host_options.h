// The options that name hosts, the same for `onebit launch` and `onebit doctor`.
#pragma once

#include <string>

#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::cli {

struct HostOptions {
  std::string hostfile, hosts, include, exclude, agent, program;
  int ranks_per_host = 0;

  bool any() const { return !hostfile.empty() || !hosts.empty(); }
};

// --hostfile, --hosts, --include, --exclude, --agent, --program. `without` says in the help which
// hosts are meant if neither of the first two is given.
void add_host_options(commands::Command command, HostOptions& options, const std::string& without);

struct ChosenHosts {
  cluster::Hosts hosts;
  std::string origin;  // "hosts", "--hosts", "Slurm job 17", "this machine"
  int threads = 0;     // per rank, if a batch system sets it
  bool in_slurm = false;
};

// The hosts that are named, otherwise the hosts of the batch system's job, otherwise this machine
// with one rank per memory node. Error: problems of the list, as one table.
ChosenHosts choose_hosts(const HostOptions& options);

cluster::Agent agent_of(const HostOptions& options, bool in_slurm);
// The path of the program on the hosts: --program, or the path of this program.
std::string program_of(const HostOptions& options);

}  // namespace onebit::cli
