// Which MPI a library or a program that starts ranks belongs to, from what it says about itself.
#pragma once

#include <string>
#include <string_view>

namespace onebit::cluster {

struct MpiVersion {
  enum class Kind { kUnknown, kOpenMpi, kMpich };

  Kind kind = Kind::kUnknown;
  int major = 0;       // of Open MPI, whose words for the same setting differ; 0: not known
  std::string number;  // "5.0.7"; empty: not known

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
// series; MPICH and its relatives have one protocol.
bool fit_together(const MpiVersion& starter, const MpiVersion& library);

}  // namespace onebit::cluster
