// The command line that starts all ranks of an attempt: Open MPI's mpirun, MPICH's mpiexec, Slurm's
// srun, or the program alone for one rank on this machine.
#pragma once

#include <string>
#include <vector>

#include "onebit/cluster/agent.h"
#include "onebit/cluster/host_list.h"
#include "onebit/cluster/shell_words.h"

namespace onebit::cluster {

enum class Starter { kAlone, kOpenMpi, kMpich, kSrun };

// "openmpi", "mpich", "srun"; "alone" for kAlone.
std::string_view name_of(Starter starter);

struct StartRequest {
  Hosts hosts;
  Agent agent;
  int threads = 0;        // of a rank; 0: not known
  bool bind = false;      // every rank to `threads` cores of its own
  std::string interface;  // of the network, or subnets as 10.0.0.0/24; empty: the starter chooses
  std::vector<std::string> exports;  // names of variables
  std::string folder;                // working directory
  std::string launch_id;
  std::string scratch;  // folder for temporary files, on every host
  bool as_root = false;
  bool in_slurm = false;
  Words command;  // of a rank
};

// Some words and why they stand there.
struct CommandPart {
  Words words;
  std::string why;
};

using StartCommand = std::vector<CommandPart>;

// Ranks are numbered host by host, in the order of the hosts. Error: srun with another number of
// ranks on some host.
StartCommand start_command(Starter starter, const StartRequest& request);

Words words_of(const StartCommand& command);

// For a terminal: the command, which a shell takes as it stands, a part a line, and below it, as
// comments, why each part stands there.
std::string explained(const StartCommand& command);

}  // namespace onebit::cluster
