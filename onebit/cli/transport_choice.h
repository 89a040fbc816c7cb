// Chooses the transport for buffers on CUDA devices.
#pragma once

#include "onebit/base/json.h"
#include "onebit/comm/launch.h"
#include "onebit/device/context.h"

namespace onebit::cli {

// Gives `world` the transport for the context's device; does nothing on a CPU. The recipe's
// optimizer.params.comm_backend_name ("nccl", "mpi") and cuda_aware (device pointers go straight to
// MPI) decide; without a name NCCL where every rank has a device of its own, else MPI, through host
// memory unless cuda_aware. The choice is logged. Collective. Errors: another name; NCCL where two
// ranks share a device; cuda_aware with an MPI that does not take device pointers.
void choose_transport(comm::World& world, const Context& context, const Json& recipe,
                      int local_ranks);

}  // namespace onebit::cli
