// Ranks whose large buffers lie on CUDA devices. Built over a communicator for host memory, which
// keeps carrying what lies there (agreements, counts, messages).
#pragma once

#include <memory>
#include <string_view>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

enum class DeviceTransport {
  kNccl,       // device to device; a device of its own for every rank
  kStaged,     // through page-locked host memory and the host's transport
  kCudaAware,  // device pointers given to the host's transport: an MPI built for that
};
std::string_view name_of(DeviceTransport transport);

// The default transport: NCCL if it is built in and no two of the `local_ranks` ranks of this
// machine share one of its `local_devices`, else staged.
DeviceTransport default_transport(int local_ranks, int local_devices);

// A transport through MPI: staged, or with `cuda_aware` straight from the device. Error: this MPI
// does not take pointers to device memory.
DeviceTransport mpi_transport(bool cuda_aware, bool takes_device_memory);

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
