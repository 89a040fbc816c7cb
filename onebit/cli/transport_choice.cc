#include "onebit/cli/transport_choice.h"

#include "onebit/base/error.h"
#include "onebit/base/log.h"
#include "onebit/device/memory.h"

namespace onebit::cli {
namespace {

using comm::DeviceTransport;

DeviceTransport transport_of(const engine::TransportRequest& request, int local_ranks,
                             int devices) {
  const auto through_mpi = [&] {
    return comm::mpi_transport(request.cuda_aware, comm::mpi_takes_device_memory());
  };
  if (request.backend.empty()) {
    // As in DeepSpeed, cuda_aware has no effect on NCCL.
    const DeviceTransport best = comm::default_transport(local_ranks, devices);
    return best == DeviceTransport::kStaged ? through_mpi() : best;
  }
  if (request.backend == "mpi") return through_mpi();
  require(
      local_ranks <= devices,
      "optimizer.params.comm_backend_name is \"nccl\", which needs a device for every rank, but "
      "this machine has {} ranks and {} CUDA devices: start fewer ranks, or set it to \"mpi\"",
      local_ranks, devices);
  return DeviceTransport::kNccl;
}

}  // namespace

void choose_transport(comm::World& world, const Context& context,
                      const engine::TransportRequest& request, int local_ranks) {
  if (context.device().is_cpu()) return;
  const int index = context.device().index;
  if (world.communicator().rank() == 0) {
    log_info("device cuda:{}: {}", index, memory::describe_cuda_device(index));
  }
  if (world.communicator().world_size() == 1) return;
  int64_t devices = memory::cuda_device_count();  // of the machine that has fewest
  world.communicator().all_reduce(std::span(&devices, 1), comm::Reduction::kMin);
  const DeviceTransport transport = transport_of(request, local_ranks, static_cast<int>(devices));
  world.use_device(context.device(), transport);
  if (world.communicator().rank() == 0) log_info("transport: {}", name_of(transport));
}

}  // namespace onebit::cli
