// Ranks as MPI processes. Implemented in mpi_communicator.cc, or no_mpi.cc without MPI.
#pragma once

#include <memory>
#include <string>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::comm {

bool mpi_is_built();
// The text of errors where MPI is not built in.
inline constexpr const char* kHowToBuildMpi =
    "install libopenmpi-dev and openmpi-bin and build again with -DONEBIT_MPI=ON";
// The first line of the library's version text ("Open MPI v4.1.4, ..."); empty if MPI is not built
// in.
std::string mpi_version();
// Whether this MPI reports that it accepts pointers to CUDA memory: one that was built without
// reads them as host pointers and crashes. False if it has no such query.
bool mpi_takes_device_memory();

// Owns MPI: initialises it with full thread support and finalises it. A process has at most one,
// and it outlives its communicators. Destruction by an exception ends the whole job. Errors: MPI is
// not built in, or it does not support calls from several threads.
class MpiEnvironment {
 public:
  MpiEnvironment();
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  // A communicator of all processes of the job. Collective.
  std::unique_ptr<Communicator> world();

 private:
  [[maybe_unused]] int exceptions_at_start_;  // not used where MPI is not built
};

}  // namespace onebit::comm
