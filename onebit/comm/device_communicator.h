// Ranks whose large buffers lie on CUDA devices. Built over a communicator for host memory, which
// keeps carrying what lies there (agreements, counts, messages).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

enum class DeviceTransport {
  kNccl,       // device to device; a device of its own for every rank
  kStaged,     // through page-locked host memory and the host's transport
  kCudaAware,  // device pointers given to the host's transport: an MPI built for that
};
std::string_view name_of(DeviceTransport transport);

// What a recipe asks for, and what is there.
struct TransportFacts {
  std::string backend;                     // "nccl", "mpi"; empty: either
  bool cuda_aware = false;                 // MPI is to take device memory
  int local_ranks = 1, local_devices = 1;  // of this machine
  bool mpi_takes_device_memory = false;
};

// Without a backend NCCL if it is built in and no two ranks of the machine share a device, else
// MPI: staged, or with `cuda_aware` straight from the device. Errors: NCCL where ranks share a
// device; an MPI that does not take pointers to device memory, if it is asked to.
DeviceTransport transport_of(const TransportFacts& facts);

// Collective. `device` is this rank's. Errors: NCCL is not built in, or refuses (two ranks on one
// device).
std::unique_ptr<Communicator> make_device_communicator(std::unique_ptr<Communicator> host,
                                                       Device device, DeviceTransport transport);

// The base of the transports between devices.
class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator(std::unique_ptr<Communicator> host, Device device);

  Device device() const override { return device_; }
  [[noreturn]] void abort(const std::string& message) override;
  void interrupt() override { host_->interrupt(); }

 protected:
  Communicator& host() const { return *host_; }
  std::unique_ptr<Request::State> start(Messages messages) final;
  void copy_own(std::byte* to, const std::byte* from, int64_t size_bytes) final;
  // Messages between device memory.
  virtual std::unique_ptr<Request::State> start_on_device(Messages messages) = 0;

 private:
  std::unique_ptr<Communicator> host_;
  Device device_;
};

}  // namespace onebit::comm
