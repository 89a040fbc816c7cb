// Which program starts the ranks of a launch: what --with asks for, or what fits the MPI of this
// build.
#pragma once

#include <functional>
#include <string>

#include "onebit/cluster/start_command.h"

namespace onebit::cluster {

struct StarterNeeds {
  std::string asked = "auto";  // the value of --with: "auto", "openmpi", "mpich", "srun"
  std::string mpi;             // the version of the MPI that this program is built with
  bool in_slurm = false;
  std::function<bool(const std::string& program)> is_there;  // in PATH
};

// Of several ranks, or of other hosts. Errors: the MPI of this build takes no ranks from what is
// asked for, or the program is not there; they name what can be used instead.
Starter choose_starter(const StarterNeeds& needs);

}  // namespace onebit::cluster
