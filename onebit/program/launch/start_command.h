// The command line that starts all ranks of an attempt: Open MPI's mpirun, MPICH's mpiexec, Slurm's
// srun, onebit's own starter for ranks without MPI, or the program alone for one rank on this
// machine.
#pragma once

#include <string>
#include <vector>

#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/program/cluster/starter_choice.h"

namespace onebit::launch {

struct StartRequest {
  cluster::Hosts hosts;
  cluster::Agent agent;
  std::string program;               // the starter, such as "mpirun", of kTcp, onebit
  int open_mpi = 0;                  // the series of Open MPI's mpirun: 4, 5
  int threads = 0;                   // per rank. 0: unknown
  bool bind = false;                 // bind every rank to `threads` cores of its own
  std::string interface;             // interface or subnet 10.0.0.0/24. Empty: the starter chooses
  std::vector<std::string> exports;  // names of variables
  std::string folder;                // working directory
  std::string launch_id;
  std::string scratch;  // folder for temporary files, on every host
  bool as_root = false;
  bool in_slurm = false;
  cluster::Words command;  // command line of a rank
};

// Some words of the command, and the reason for them.
struct CommandPart {
  cluster::Words words;
  std::string why;
};

using StartCommand = std::vector<CommandPart>;

// Ranks are numbered host by host, in the order of the hosts. Errors: what the starter cannot be
// told: different numbers of ranks per host (srun), an agent or a network that it does not take.
StartCommand start_command(cluster::Starter starter, const StartRequest& request);

cluster::Words words_of(const StartCommand& command);

// For a terminal: the command, one part per line, which a shell accepts unchanged, followed by
// shell comments that explain each part.
std::string explained(const StartCommand& command);

}  // namespace onebit::launch
