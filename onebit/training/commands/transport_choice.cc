#include "onebit/training/commands/transport_choice.h"

#include <algorithm>
#include <string>
#include <vector>

#include "onebit/exchange/comm/device_communicator.h"
#include "onebit/exchange/comm/mpi_communicator.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/memory.h"

namespace onebit::commands {

void choose_transport(comm::World& world, const Context& context,
                      const engine::TransportRequest& request) {
  const bool on_cpu = context.device().is_cpu();
  const int index = context.device().index;
  if (world.communicator().rank() == 0 && !on_cpu) {
    log_info("device cuda:{}: {}", index, memory::describe_cuda_device(index));
  }
  if (world.communicator().world_size() == 1) return;
  const std::vector<std::string> uuids =
      comm::device_uuids_of_ranks(world.communicator(), context.device());
  if (std::ranges::all_of(uuids, [](const auto& uuid) { return uuid.empty(); })) return;
  const comm::DeviceTransport transport =
      comm::transport_of({.backend = request.backend,
                          .host = std::string(world.communicator().transport()),
                          .cuda_aware = request.cuda_aware,
                          .device_uuids = uuids,
                          .mpi_takes_device_memory = comm::mpi_takes_device_memory()});
  world.use_device(context.device(), transport);
  if (world.communicator().rank() == 0) log_info("transport: {}", world.communicator().transport());
}

}  // namespace onebit::commands
