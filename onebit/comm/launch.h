// How this process was started, and the communicator that follows from it.
#pragma once

#include <memory>
#include <string>

#include "onebit/comm/communicator.h"
#include "onebit/comm/device_communicator.h"
#include "onebit/comm/mpi_communicator.h"

namespace onebit::comm {

// What a starter put into the environment. `starter` is empty if the process was started alone.
struct Launch {
  std::string starter;  // "mpirun" (Open MPI), "mpiexec" (PMI), "srun" (Slurm)
  int rank = 0;
  int world_size = 1;
};

// Error: a starter's variable that is not a number.
Launch detect_launch();

// The ranks this process belongs to: MPI when a starter started several, one rank otherwise. Ranks
// share a node as MPI says, or as ONEBIT_RANKS_A_NODE does: so many ranks, one after the other,
// each. Errors: several were launched and MPI is not built in, or MPI sees another number of ranks
// than the starter started (a starter of another MPI).
class World {
 public:
  World();
  Communicator& communicator() { return *communicator_; }
  // Replaces communicator() by one for buffers on `device`, built over the previous one, which
  // stays alive. Collective.
  void use_device(Device device, DeviceTransport transport);

 private:
  std::unique_ptr<MpiEnvironment> environment_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace onebit::comm
