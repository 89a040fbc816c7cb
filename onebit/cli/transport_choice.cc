#include "onebit/cli/transport_choice.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "onebit/base/error.h"
#include "onebit/base/log.h"
#include "onebit/comm/device_communicator.h"
#include "onebit/comm/mpi_communicator.h"
#include "onebit/device/memory.h"

namespace onebit::cli {
namespace {

const std::string kNoDevice(36, '-');  // in place of the UUID of a CUDA device

// Of the devices of all ranks; `mine` is this rank's. Collective.
std::vector<std::string> uuids_of_ranks(comm::Communicator& world, const std::string& mine) {
  std::string all(mine.size() * static_cast<size_t>(world.world_size()), '\0');
  world.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> uuids;
  for (size_t at = 0; at < all.size(); at += mine.size()) {
    uuids.push_back(all.substr(at, mine.size()));
  }
  return uuids;
}

}  // namespace

void choose_transport(comm::World& world, const Context& context,
                      const engine::TransportRequest& request) {
  const bool on_cpu = context.device().is_cpu();
  const int index = context.device().index;
  if (world.communicator().rank() == 0 && !on_cpu) {
    log_info("device cuda:{}: {}", index, memory::describe_cuda_device(index));
  }
  if (world.communicator().world_size() == 1) return;
  const std::vector<std::string> uuids =
      uuids_of_ranks(world.communicator(), on_cpu ? kNoDevice : memory::cuda_device_uuid(index));
  const auto without = std::ranges::find(uuids, kNoDevice);
  const auto with = std::ranges::find_if(uuids, [](const auto& uuid) { return uuid != kNoDevice; });
  if (with == uuids.end()) return;
  require(without == uuids.end(),
          "rank {} uses a CUDA device, and rank {} the CPU: `--device cuda` on all ranks says what "
          "the other one lacks, `--device cpu` trains on the CPUs of all",
          with - uuids.begin(), without - uuids.begin());
  const comm::DeviceTransport transport =
      comm::transport_of({.backend = request.backend,
                          .cuda_aware = request.cuda_aware,
                          .device_uuids = uuids,
                          .mpi_takes_device_memory = comm::mpi_takes_device_memory()});
  world.use_device(context.device(), transport);
  if (world.communicator().rank() == 0) log_info("transport: {}", name_of(transport));
}

}  // namespace onebit::cli
