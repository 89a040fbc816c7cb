// How this process was started, and the communicator that results.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/exchange/transport/mpi_communicator.h"

namespace onebit::transport {

// What a starter put into the environment. `starter` is empty if the process was started directly.
struct Launch {
  std::string starter;  // "mpirun" (Open MPI), "mpiexec" (PMI), "srun" (Slurm), "torchrun"
  int rank = 0;
  int world_size = 1;
};

// "torchrun" is also whatever else sets RANK and WORLD_SIZE. Error: a starter's variable is not a
// number.
Launch detect_launch();

// What connects the ranks of a launch, "mpi" or "tcp": ONEBIT_TRANSPORT decides, otherwise the
// starter. Ranks of torchrun have no MPI. Ranks of srun need none if MASTER_ADDR and MASTER_PORT
// are set and MPI cannot be used. Error: ONEBIT_TRANSPORT is something else.
std::string host_transport(const Launch& launch);

// The ranks this process belongs to: connected by MPI or TCP if a starter started several,
// otherwise one rank. The transport determines which ranks share a node, or ONEBIT_RANKS_A_NODE
// does: that many consecutive ranks per node. Errors: several ranks were launched for MPI and it
// cannot be used, or MPI sees another number of ranks than the starter started (the starter of
// another MPI), and the errors of make_tcp_world(). `check` is called while this rank waits for
// others over TCP (TcpOptions).
class World {
 public:
  explicit World(const std::function<void()>& check = [] {});
  comm::Communicator& communicator() { return *communicator_; }
  // Replaces communicator() by one for buffers on `device`, built on the previous one, which
  // stays alive. Collective.
  void use_device(Device device, DeviceTransport transport);

 private:
  std::unique_ptr<MpiEnvironment> environment_;
  std::unique_ptr<comm::Communicator> communicator_;
};

}  // namespace onebit::transport
