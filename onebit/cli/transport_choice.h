// Chooses the transport for buffers on CUDA devices.
#pragma once

#include "onebit/comm/launch.h"
#include "onebit/device/context.h"
#include "onebit/engine/config.h"

namespace onebit::cli {

// Gives `world` the transport for the context's device; does nothing on a CPU. What the recipe asks
// for decides; without a backend NCCL where every rank has a device of its own, else MPI, through
// host memory unless cuda_aware. The choice is logged. Collective. Errors: NCCL where two ranks
// share a device; cuda_aware with an MPI that does not take device pointers.
void choose_transport(comm::World& world, const Context& context,
                      const engine::TransportRequest& request, int local_ranks);

}  // namespace onebit::cli
