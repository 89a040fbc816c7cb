// Ranks as MPI processes. MPI is loaded when it is first needed (mpi_library.h).
#pragma once

#include <memory>
#include <string>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::comm {

// Why MPI cannot be used here, and what to do: this onebit is built without it, or a library is
// missing. "" if it can. Loads it.
std::string mpi_problem();
inline bool mpi_is_there() {
  return mpi_problem().empty();
}
// The first line of the library's version text ("Open MPI v4.1.4, ..."), or "" if MPI cannot be
// used.
std::string mpi_version();
// Whether this MPI reports that it accepts pointers to CUDA memory: one that was built without
// reads them as host pointers and crashes. False if it has no such query.
bool mpi_takes_device_memory();

// Owns MPI: initialises it with full thread support and finalises it. A process has at most one,
// and it outlives its communicators. Destruction by an exception ends the whole job. Errors: MPI
// cannot be used, or it does not support calls from several threads.
class MpiEnvironment {
 public:
  MpiEnvironment();
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  // A communicator of all processes of the job. Collective.
  std::unique_ptr<Communicator> world();

 private:
  int exceptions_at_start_;
};

}  // namespace onebit::comm
