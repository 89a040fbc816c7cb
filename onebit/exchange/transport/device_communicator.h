// Ranks whose large buffers are on CUDA devices. Built on a communicator for host memory, which
// still carries the data in host memory (agreements, counts, messages).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::transport {

enum class DeviceTransport {
  kNccl,       // device to device, where every rank has its own device
  kStaged,     // through page-locked host memory and the host's transport
  kCudaAware,  // device pointers passed to the host's transport, a CUDA-aware MPI
};
std::string_view name_of(DeviceTransport transport);

// What a recipe requests and what is available.
struct TransportFacts {
  std::string backend;                    // "nccl", "mpi", "tcp"; empty: any
  std::string host = "mpi";               // what connects the processes
  bool cuda_aware = false;                // MPI shall receive device pointers
  std::vector<std::string> device_uuids;  // of the device of every rank; empty: a CPU
  bool mpi_takes_device_memory = false;
};

// The device of every rank, by UUID. It is empty for a CPU. `mine` is this rank's. Collective.
std::vector<std::string> device_uuids_of_ranks(comm::Communicator& world, Device mine);

// Without a backend: NCCL if it is built in and no two ranks share a device, else what connects the
// processes, staged or, with `cuda_aware`, directly from device memory. Errors: NCCL is requested
// where ranks share a device; MPI or TCP where the other one connects the processes; `cuda_aware`
// of an MPI that does not accept device pointers; some ranks are on CPUs.
DeviceTransport transport_of(const TransportFacts& facts);

// Collective. `device` is this rank's. Errors: NCCL is not built in.
std::unique_ptr<comm::Communicator> make_device_communicator(
    std::unique_ptr<comm::Communicator> host, Device device, DeviceTransport transport);

// The base class of the transports between devices.
class DeviceCommunicator : public comm::Communicator {
 public:
  DeviceCommunicator(std::unique_ptr<comm::Communicator> host, Device device);

  Device device() const override { return device_; }
  [[noreturn]] void abort(const std::string& message) override;
  void check_peers() const override { host_->check_peers(); }
  void interrupt() override { host_->interrupt(); }

 protected:
  comm::Communicator& host() const { return *host_; }
  std::unique_ptr<comm::Request::State> start(Messages messages) final;
  void copy_own(std::byte* to, const std::byte* from, int64_t size_bytes) final;
  // Messages between device memory: if one rank has any in a collective, all have.
  virtual std::unique_ptr<comm::Request::State> start_on_device(Messages messages) = 0;

 private:
  std::unique_ptr<comm::Communicator> host_;
  Device device_;
};

}  // namespace onebit::transport
