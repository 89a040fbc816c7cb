#include "onebit/cli/transport_choice.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "onebit/base/log.h"
#include "onebit/comm/device_communicator.h"
#include "onebit/comm/mpi_communicator.h"
#include "onebit/device/memory.h"

namespace onebit::cli {
namespace {

constexpr size_t kUuidCharacters = 36;

// Of the devices of all ranks, empty on a CPU; `mine` is this rank's. Collective.
std::vector<std::string> uuids_of_ranks(comm::Communicator& world, std::string mine) {
  mine.resize(kUuidCharacters, '\0');
  std::string all(mine.size() * static_cast<size_t>(world.world_size()), '\0');
  world.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> uuids;
  for (size_t at = 0; at < all.size(); at += mine.size()) {
    uuids.push_back(all[at] == '\0' ? "" : all.substr(at, mine.size()));
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
      uuids_of_ranks(world.communicator(), on_cpu ? "" : memory::cuda_device_uuid(index));
  if (std::ranges::all_of(uuids, [](const auto& uuid) { return uuid.empty(); })) return;
  const comm::DeviceTransport transport =
      comm::transport_of({.backend = request.backend,
                          .cuda_aware = request.cuda_aware,
                          .device_uuids = uuids,
                          .mpi_takes_device_memory = comm::mpi_takes_device_memory()});
  world.use_device(context.device(), transport);
  if (world.communicator().rank() == 0) log_info("transport: {}", name_of(transport));
}

}  // namespace onebit::cli
