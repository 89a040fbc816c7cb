// Chooses the transport for buffers on CUDA devices.
#pragma once

#include "onebit/exchange/comm/world.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/math/device/context.h"

namespace onebit::commands {

// Gives `world` the transport for the context's device; none where all ranks are on CPUs. The
// recipe decides. If it names no backend: NCCL if every rank has a device of its own, otherwise
// what connects the processes, through host memory unless cuda_aware. The choice is logged.
// Collective.
// Errors: NCCL with two ranks on one device; MPI or TCP where the other one connects the processes;
// cuda_aware with an MPI that does not accept device pointers; CUDA on some ranks only.
void choose_transport(comm::World& world, const Context& context,
                      const engine::TransportRequest& request);

}  // namespace onebit::commands
