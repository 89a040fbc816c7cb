// How this process was started, and the communicator that results.
#pragma once

#include <memory>
#include <string>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/comm/device_communicator.h"
#include "onebit/exchange/comm/mpi_communicator.h"

namespace onebit::comm {

// What a starter put into the environment. `starter` is empty if the process was started directly.
struct Launch {
  std::string starter;  // "mpirun" (Open MPI), "mpiexec" (PMI), "srun" (Slurm)
  int rank = 0;
  int world_size = 1;
};

// Error: a starter's variable is not a number.
Launch detect_launch();

// The ranks this process belongs to: MPI if a starter started several, otherwise one rank. MPI
// determines which ranks share a node, or ONEBIT_RANKS_A_NODE does: that many consecutive ranks per
// node. Errors: several ranks were launched and MPI is not built in, or MPI sees another number of
// ranks than the starter started (the starter of another MPI).
class World {
 public:
  World();
  Communicator& communicator() { return *communicator_; }
  // Replaces communicator() by one for buffers on `device`, built on the previous one, which
  // stays alive. Collective.
  void use_device(Device device, DeviceTransport transport);

 private:
  std::unique_ptr<MpiEnvironment> environment_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace onebit::comm
