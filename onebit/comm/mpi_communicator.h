// Ranks as MPI processes. mpi_communicator.cc, or no_mpi.cc where MPI is not built in.
#pragma once

#include <memory>
#include <string>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

bool mpi_is_built();
// What errors say where it is not.
inline constexpr const char* kHowToBuildMpi =
    "install libopenmpi-dev and openmpi-bin and build again with -DONEBIT_MPI=ON";
// The first line of the library's version text ("Open MPI v4.1.4, ..."); empty if MPI is not built
// in.
std::string mpi_version();
// Whether this MPI reports that it takes pointers to CUDA memory: one that was not built for them
// reads them as host pointers and crashes. False if it offers no such query.
bool mpi_takes_device_memory();

// Owns MPI: initialises it with full thread support and finalises it. There is one in a process,
// and it outlives its communicators. Leaving it by an exception ends the whole job. Errors: MPI is
// not built in, or it does not support calls from several threads.
class MpiEnvironment {
 public:
  MpiEnvironment();
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  // All processes of the job. Collective.
  std::unique_ptr<Communicator> world();

 private:
  int exceptions_at_start_;
};

}  // namespace onebit::comm
