// Ranks as MPI processes. mpi_communicator.cc, or no_mpi.cc where MPI is not built in.
#pragma once

#include <memory>
#include <string>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

bool mpi_is_built();
// The library's own words ("Open MPI v4.1.4, ..."), its first line; empty where it is not built in.
std::string mpi_version();
// Whether pointers to CUDA memory may be given to this MPI, by its own word: one that was not built
// for them reads them as the host's and crashes. False where it cannot be asked.
bool mpi_takes_device_memory();

// Owns MPI: initialises it with full thread support and finalises it. One a process, outliving its
// communicators. Leaving it by an exception ends the whole job. Errors: MPI is not built in, or it
// does not support calls from several threads.
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
