#include "onebit/cli/transport_choice.h"

#include "onebit/base/log.h"
#include "onebit/comm/device_communicator.h"
#include "onebit/comm/mpi_communicator.h"
#include "onebit/device/memory.h"

namespace onebit::cli {

void choose_transport(comm::World& world, const Context& context,
                      const engine::TransportRequest& request, int local_ranks) {
  if (context.device().is_cpu()) return;
  const int index = context.device().index;
  if (world.communicator().rank() == 0) {
    log_info("device cuda:{}: {}", index, memory::describe_cuda_device(index));
  }
  if (world.communicator().world_size() == 1) return;
  int64_t devices = memory::cuda_device_count();  // on the machine with the fewest
  world.communicator().all_reduce(std::span(&devices, 1), comm::Reduction::kMin);
  const comm::DeviceTransport transport =
      comm::transport_of({.backend = request.backend,
                          .cuda_aware = request.cuda_aware,
                          .local_ranks = local_ranks,
                          .local_devices = static_cast<int>(devices),
                          .mpi_takes_device_memory = comm::mpi_takes_device_memory()});
  world.use_device(context.device(), transport);
  if (world.communicator().rank() == 0) log_info("transport: {}", name_of(transport));
}

}  // namespace onebit::cli
