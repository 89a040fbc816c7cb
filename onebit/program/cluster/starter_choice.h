// Chooses the program that starts the ranks of a launch: the one of --with, or the one that fits
// the MPI of this build.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "onebit/program/cluster/mpi_version.h"
#include "onebit/program/cluster/start_command.h"

namespace onebit::cluster {

struct StarterNeeds {
  std::string asked = "auto";  // the value of --with: "auto", "openmpi", "mpich", "srun"
  std::string mpi;  // the version of the MPI library that this program runs with, in its own words
  bool in_slurm = false;
  std::function<bool(const std::string& program)> is_there;  // whether it is in PATH
  // What a program that is there prints when it is asked for its version.
  std::function<std::string(const std::string& program)> says;
};

struct ChosenStarter {
  Starter starter = Starter::kAlone;
  std::string program = {};  // "mpirun", or another name of it that fits this build
  MpiVersion version = {};   // of the program; unknown for srun
};

// For several ranks or other hosts. Errors: the requested starter does not fit the MPI of this
// build, its program is not in PATH, or the program of that name belongs to another MPI; the
// message names what can be used instead.
ChosenStarter choose_starter(const StarterNeeds& needs);

}  // namespace onebit::cluster
