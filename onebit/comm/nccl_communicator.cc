// The only file that calls NCCL.
#include "onebit/comm/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "onebit/comm/device_communicator.h"
#include "onebit/device/cuda_check.h"

namespace onebit::comm {
namespace {

std::atomic<int64_t> made{0};

void check_nccl(ncclResult_t status, ncclComm_t comm, const char* call) {
  if (status == ncclSuccess) return;
  fail(
      "{}: {}. {} (NCCL_DEBUG=INFO logs more; set optimizer.params.comm_backend_name to \"mpi\" to "
      "run without NCCL)",
      call, ncclGetErrorString(status), ncclGetLastError(comm));
}

// Shared by a communicator and its unfinished requests.
struct Link {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::atomic<bool> interrupted{false};
  int rank = 0;
  const Communicator* host = nullptr;  // a request is not used after its communicator

  // Ends what waits on the device for a failed rank; freeing memory would wait for it, too.
  void give_up() noexcept {
    if (comm != nullptr) ncclCommAbort(comm);
    comm = nullptr;
  }
  void check_peers() {
    try {
      host->check_peers();
    } catch (const PeerError&) {
      give_up();
      throw;
    }
  }

  ~Link() {
    // The calls below would wait for the other ranks, which learn of an error only after this
    // unwinding.
    if (std::uncaught_exceptions() > 0) return;
    // The work of an interrupted communicator never completes.
    if (interrupted) {
      give_up();
    } else if (comm != nullptr) {
      cudaStreamSynchronize(stream);
      ncclCommDestroy(comm);
    }
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
};

class NcclState final : public Request::State {
 public:
  NcclState(std::shared_ptr<Link> link, std::string_view operation)
      : link_(std::move(link)), operation_(operation) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    check_cuda(cudaEventRecord(event_, link_->stream), "cudaEventRecord");
  }
  ~NcclState() override { cudaEventDestroy(event_); }

  bool test() override {
    if (link_->interrupted) fail("rank {}: interrupted in {}", link_->rank, operation_);
    link_->check_peers();
    ncclResult_t status = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(link_->comm, &status), link_->comm, "ncclCommGetAsyncError");
    check_nccl(status, link_->comm, "NCCL");
    const cudaError_t reached = cudaEventQuery(event_);
    if (reached == cudaErrorNotReady) {
      cudaGetLastError();  // clears the error, which the next kernel launch would report otherwise
      return false;
    }
    check_cuda(reached, "cudaEventQuery");
    return true;
  }
  void wait() override {
    for (int64_t round = 0; !test(); ++round) {
      if (round < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

 private:
  std::shared_ptr<Link> link_;
  std::string_view operation_;
  cudaEvent_t event_ = nullptr;
};

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> host, Device device)
      : DeviceCommunicator(std::move(host), device), link_(std::make_shared<Link>()) {
    link_->rank = rank();
    link_->host = &this->host();
  }

  std::string_view transport() const override { return name_of(DeviceTransport::kNccl); }
  void interrupt() override {
    link_->interrupted = true;
    DeviceCommunicator::interrupt();
  }

 protected:
  std::unique_ptr<Communicator> make_duplicate() override {
    return std::make_unique<NcclCommunicator>(host().duplicate(), device());
  }
  std::unique_ptr<Communicator> make_split(int color, const std::vector<int>&) override {
    return std::make_unique<NcclCommunicator>(host().split(color), device());
  }
  // The caller's stream has been synchronised; the requests complete when this stream completes.
  std::unique_ptr<Request::State> start_on_device(Messages messages) override {
    link_->check_peers();
    check_cuda(cudaSetDevice(device().index), "cudaSetDevice");
    if (!connected_) connect();
    ncclComm_t comm = link_->comm;
    check_nccl(ncclGroupStart(), comm, "ncclGroupStart");
    for (int peer = 0; peer < world_size(); ++peer) {
      const auto& send = messages.send[static_cast<size_t>(peer)];
      const auto& receive = messages.receive[static_cast<size_t>(peer)];
      if (!send.empty()) {
        check_nccl(ncclSend(send.data(), send.size(), ncclUint8, peer, comm, link_->stream), comm,
                   "ncclSend");
      }
      if (!receive.empty()) {
        check_nccl(ncclRecv(receive.data(), receive.size(), ncclUint8, peer, comm, link_->stream),
                   comm, "ncclRecv");
      }
    }
    check_nccl(ncclGroupEnd(), comm, "ncclGroupEnd");
    return std::make_unique<NcclState>(link_, messages.operation);
  }

 private:
  // With the first message between devices, which all ranks come to together: a communicator of
  // NCCL takes some hundred megabytes of each device, and duplicates for checkpoints or agreements
  // send host memory alone.
  void connect() {
    int version = 0;  // where NCCL is missing, before the others wait for this rank
    check_nccl(ncclGetVersion(&version), nullptr, "ncclGetVersion");
    ncclUniqueId id{};
    if (rank() == 0) check_nccl(ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId");
    host().broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    host().barrier();  // NCCL would wait for ever for a rank that has failed
    check_nccl(ncclCommInitRank(&link_->comm, world_size(), id, rank()), nullptr,
               "ncclCommInitRank");
    check_cuda(cudaStreamCreateWithFlags(&link_->stream, cudaStreamNonBlocking),
               "cudaStreamCreate");
    connected_ = true;
    ++made;
  }

  std::shared_ptr<Link> link_;
  bool connected_ = false;
};

}  // namespace

int64_t nccl_communicators_made() {
  return made;
}

bool nccl_is_built() {
  return true;
}

std::string describe_nccl() {
  int version = 0;
  const ncclResult_t status = ncclGetVersion(&version);
  if (status != ncclSuccess) return fmt::format("not usable: {}", ncclGetErrorString(status));
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> host,
                                                     Device device) {
  return std::make_unique<NcclCommunicator>(std::move(host), device);
}

}  // namespace onebit::comm
