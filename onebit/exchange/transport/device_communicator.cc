#include "onebit/exchange/transport/device_communicator.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/exchange/transport/staged_communicator.h"
#include "onebit/math/device/memory.h"

namespace onebit::transport {
namespace {

// A CUDA-aware MPI needs no staging.
class CudaAwareCommunicator final : public DeviceCommunicator {
 public:
  using DeviceCommunicator::DeviceCommunicator;
  std::string_view transport() const override { return name_of(DeviceTransport::kCudaAware); }

 protected:
  std::unique_ptr<comm::Communicator> make_duplicate() override {
    return std::make_unique<CudaAwareCommunicator>(host().duplicate(), device());
  }
  std::unique_ptr<comm::Communicator> make_split(int color, const std::vector<int>&) override {
    return std::make_unique<CudaAwareCommunicator>(host().split(color), device());
  }
  std::unique_ptr<comm::Request::State> start_on_device(Messages messages) override {
    return start_on(host(), std::move(messages));
  }
};

// The first two ranks with the same device.
std::optional<std::pair<size_t, size_t>> ranks_that_share(const std::vector<std::string>& uuids) {
  std::map<std::string_view, size_t> first;
  for (size_t rank = 0; rank < uuids.size(); ++rank) {
    const auto [known, fresh] = first.emplace(uuids[rank], rank);
    if (!fresh) return std::pair(known->second, rank);
  }
  return std::nullopt;
}

void require_devices(const std::vector<std::string>& uuids) {
  const auto without = std::ranges::find(uuids, "");
  const auto with = std::ranges::find_if(uuids, [](const auto& uuid) { return !uuid.empty(); });
  require(without == uuids.end(),
          "rank {} uses a CUDA device, and rank {} the CPU: `--device cuda` on all ranks says what "
          "the other one lacks, `--device cpu` trains on the CPUs of all",
          with - uuids.begin(), without - uuids.begin());
}

}  // namespace

std::string_view name_of(DeviceTransport transport) {
  switch (transport) {
    case DeviceTransport::kNccl:
      return "nccl";
    case DeviceTransport::kStaged:
      return "staged through host memory";
    case DeviceTransport::kCudaAware:
      break;
  }
  return "mpi, cuda-aware";
}

std::vector<std::string> device_uuids_of_ranks(comm::Communicator& world, Device mine) {
  constexpr size_t kCharacters = 36;
  std::string own = mine.is_cpu() ? "" : memory::cuda_device_uuid(mine.index);
  own.resize(kCharacters, '\0');
  std::string all(kCharacters * static_cast<size_t>(world.world_size()), '\0');
  world.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> uuids;
  for (size_t at = 0; at < all.size(); at += kCharacters) {
    uuids.push_back(all[at] == '\0' ? "" : all.substr(at, kCharacters));
  }
  return uuids;
}

DeviceTransport transport_of(const TransportFacts& facts) {
  require_devices(facts.device_uuids);
  const auto sharing = ranks_that_share(facts.device_uuids);
  if (facts.backend == "nccl" && sharing) {
    fail(
        "optimizer.params.comm_backend_name is \"nccl\", which needs one device per rank, but "
        "ranks {} and {} have the same one, {}: start one rank for each device and let it see its "
        "own (CUDA_VISIBLE_DEVICES), or set the key to \"{}\"",
        sharing->first, sharing->second, facts.device_uuids[sharing->first], facts.host);
  }
  if (facts.backend == "nccl") return DeviceTransport::kNccl;
  require(facts.backend.empty() || facts.backend == facts.host,
          "optimizer.params.comm_backend_name is \"{}\", but the processes are connected by {}: "
          "remove the key, or start the ranks with {}",
          facts.backend, facts.host,
          facts.backend == "tcp" ? "torchrun, or with ONEBIT_TRANSPORT=tcp" : "mpirun or srun");
  // As in DeepSpeed, cuda_aware has no effect on NCCL.
  if (facts.backend.empty() && !sharing && nccl_is_built()) return DeviceTransport::kNccl;
  if (!facts.cuda_aware) return DeviceTransport::kStaged;
  require(facts.mpi_takes_device_memory,
          "optimizer.params.cuda_aware is true, but this MPI does not report support for pointers "
          "to CUDA memory (MPIX_Query_cuda_support): remove the key to copy through host memory, "
          "or use an MPI that is built with CUDA");
  return DeviceTransport::kCudaAware;
}

std::unique_ptr<comm::Communicator> make_device_communicator(
    std::unique_ptr<comm::Communicator> host, Device device, DeviceTransport transport) {
  switch (transport) {
    case DeviceTransport::kNccl:
      return make_nccl_communicator(std::move(host), device);
    case DeviceTransport::kStaged:
      return std::make_unique<StagedCommunicator>(std::move(host), device);
    case DeviceTransport::kCudaAware:
      break;
  }
  return std::make_unique<CudaAwareCommunicator>(std::move(host), device);
}

DeviceCommunicator::DeviceCommunicator(std::unique_ptr<comm::Communicator> host, Device device)
    : comm::Communicator(host->rank(), host->world_size(), host->local_rank()),
      host_(std::move(host)),
      device_(device) {
  set_nodes(host_->nodes());
}

void DeviceCommunicator::abort(const std::string& message) {
  host_->abort(message);
  std::terminate();  // not reached; a call through the base class does not guarantee it
}

std::unique_ptr<comm::Request::State> DeviceCommunicator::start(Messages messages) {
  const auto on_device = [this](const auto& span) {
    return !span.empty() && !memory::device_of(device_.index, span.data()).is_cpu();
  };
  const bool any = std::any_of(messages.send.begin(), messages.send.end(), on_device) ||
                   std::any_of(messages.receive.begin(), messages.receive.end(), on_device);
  return any ? start_on_device(std::move(messages)) : start_on(*host_, std::move(messages));
}

void DeviceCommunicator::copy_own(std::byte* to, const std::byte* from, int64_t size_bytes) {
  const auto in_host_memory = [this](const void* data) {
    return memory::device_of(device_.index, data).is_cpu();
  };
  if (in_host_memory(to) && in_host_memory(from)) {
    std::memcpy(to, from, static_cast<size_t>(size_bytes));
  } else {
    memory::copy_beside(device_.index, to, from, size_bytes);
  }
}

}  // namespace onebit::transport
