// Chooses the program that starts the ranks of a launch: the one of --with, or the one that fits
// the MPI of this build.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace onebit::cluster {

enum class Starter { kAlone, kOpenMpi, kMpich, kSrun, kTcp };

// "openmpi", "mpich", "srun", "tcp"; "alone" for kAlone.
std::string_view name_of(Starter starter);

// Which MPI a library or a program that starts ranks belongs to, from what it says about itself.
struct MpiVersion {
  enum class Kind { kUnknown, kOpenMpi, kMpich };

  Kind kind = Kind::kUnknown;
  int major = 0;       // of Open MPI, whose words for the same setting differ. 0: not known
  std::string number;  // "5.0.7". Empty: not known

  // "Open MPI 5.0.7", "MPICH 4.0.2"; "another MPI".
  std::string text() const;
  bool operator==(const MpiVersion&) const = default;
};

// The text of MPI_Get_library_version(). Everything that is not Open MPI counts as MPICH: other
// MPIs come from it.
MpiVersion version_of_library(std::string_view text);
// What `mpirun --version` or `mpiexec --version` prints.
MpiVersion version_of_starter(std::string_view text);

// Whether the starter can connect ranks that use the library. The parts of Open MPI must be of one
// series. MPICH and its relatives have one protocol.
bool fit_together(const MpiVersion& starter, const MpiVersion& library);

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
  MpiVersion version = {};   // of the program, unknown for srun
};

// For several ranks or other hosts. Errors: the requested starter does not fit the MPI of this
// build, its program is not in PATH, or the program of that name belongs to another MPI. The
// message names what can be used instead.
ChosenStarter choose_starter(const StarterNeeds& needs);

}  // namespace onebit::cluster
