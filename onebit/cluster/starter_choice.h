// Chooses the program that starts the ranks of a launch: the one of --with, or the one that fits
// the MPI of this build.
#pragma once

#include <functional>
#include <string>

#include "onebit/cluster/start_command.h"

namespace onebit::cluster {

struct StarterNeeds {
  std::string asked = "auto";  // the value of --with: "auto", "openmpi", "mpich", "srun"
  std::string mpi;             // the version of the MPI that this program is built with
  bool in_slurm = false;
  std::function<bool(const std::string& program)> is_there;  // whether it is in PATH
};

// For several ranks or other hosts. Errors: the requested starter does not fit the MPI of this
// build, or its program is not in PATH; the message names what can be used instead.
Starter choose_starter(const StarterNeeds& needs);

}  // namespace onebit::cluster
