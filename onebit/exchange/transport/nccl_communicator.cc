// The only file that calls NCCL.
#include "onebit/exchange/transport/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/number.h"
#include "onebit/math/device/cuda_check.h"

namespace onebit::transport {
namespace {

constexpr const char* kSecondsVariable = "ONEBIT_NCCL_CONNECT_SECONDS";
constexpr std::chrono::seconds kWarnAfter{30}, kLongestConnection{300};

std::atomic<int64_t> made{0};

// How long NCCL may take to connect the ranks.
std::chrono::seconds longest_connection() {
  const char* const text = std::getenv(kSecondsVariable);
  if (text == nullptr) return kLongestConnection;
  const std::optional<int> seconds = whole_number<int>(text);
  require(seconds && *seconds > 0, "{} is \"{}\": set it to a number of seconds or unset it",
          kSecondsVariable, text);
  return std::chrono::seconds(*seconds);
}

void check_nccl(ncclResult_t status, ncclComm_t comm, const char* call) {
  if (status == ncclSuccess) return;
  fail(
      "{}: {}. {} (NCCL_DEBUG=INFO logs more; set optimizer.params.comm_backend_name to \"mpi\" to "
      "run without NCCL)",
      call, ncclGetErrorString(status), ncclGetLastError(comm));
}

// Between two questions: at first other threads, later the processor too gets a pause.
void rest(int64_t round) {
  if (round < 1000) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// Shared by a communicator and its unfinished requests. NCCL's calls return at once (blocking = 0),
// so that a rank that waits for others also notices that one of them has failed.
struct Link {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::atomic<bool> interrupted{false};
  int rank = 0, device_index = 0;
  const comm::Communicator* host = nullptr;  // a request is not used after its communicator

  // Ends what waits on the device for a failed rank; freeing memory would wait for it, too.
  void give_up() noexcept {
    if (comm != nullptr) ncclCommAbort(comm);
    comm = nullptr;
  }
  void check_peers() {
    try {
      host->check_peers();
    } catch (const comm::PeerError&) {
      give_up();
      throw;
    }
  }

  void select_device() const { check_cuda(cudaSetDevice(device_index), "cudaSetDevice"); }
  // Whether NCCL is still busy with `call`. Errors: it failed, or another rank did.
  bool is_busy(const char* call) {
    check_peers();
    ncclResult_t status = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(comm, &status), comm, "ncclCommGetAsyncError");
    if (status == ncclInProgress) return true;
    check_nccl(status, comm, call);
    return false;
  }
  // Waits for what `call` has started, which returned `status`.
  void finish(ncclResult_t status, const char* call) {
    if (status != ncclInProgress) check_nccl(status, comm, call);
    for (int64_t round = 0; is_busy(call); ++round) {
      if (interrupted) fail("rank {}: interrupted in {}", rank, call);
      rest(round);
    }
  }

  ~Link() {
    cudaSetDevice(device_index);
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

class NcclState final : public comm::Request::State {
 public:
  NcclState(std::shared_ptr<Link> link, std::string_view operation)
      : link_(std::move(link)), operation_(operation) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    check_cuda(cudaEventRecord(event_, link_->stream), "cudaEventRecord");
  }
  ~NcclState() override {
    cudaSetDevice(link_->device_index);
    cudaEventDestroy(event_);
  }

  bool test() override {
    if (link_->interrupted) fail("rank {}: interrupted in {}", link_->rank, operation_);
    link_->select_device();
    link_->is_busy("NCCL");
    const cudaError_t reached = cudaEventQuery(event_);
    if (reached == cudaErrorNotReady) {
      cudaGetLastError();  // clears the error, which the next kernel launch would report otherwise
      return false;
    }
    check_cuda(reached, "cudaEventQuery");
    return true;
  }
  void wait() override {
    for (int64_t round = 0; !test(); ++round) rest(round);
  }

 private:
  std::shared_ptr<Link> link_;
  std::string_view operation_;
  cudaEvent_t event_ = nullptr;
};

// A group of sends and receives. An error between them closes it, too: every later call of the
// thread would belong to it otherwise.
class OpenGroup {
 public:
  explicit OpenGroup(ncclComm_t comm) { check_nccl(ncclGroupStart(), comm, "ncclGroupStart"); }
  ~OpenGroup() {
    if (open_) ncclGroupEnd();
  }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

  ncclResult_t end() {
    open_ = false;
    return ncclGroupEnd();
  }

 private:
  bool open_ = true;
};

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(std::unique_ptr<comm::Communicator> host, Device device)
      : DeviceCommunicator(std::move(host), device), link_(std::make_shared<Link>()) {
    link_->rank = rank();
    link_->device_index = device.index;
    link_->host = &this->host();
  }

  std::string_view transport() const override { return name_of(DeviceTransport::kNccl); }
  void interrupt() override {
    link_->interrupted = true;
    DeviceCommunicator::interrupt();
  }

 protected:
  std::unique_ptr<comm::Communicator> make_duplicate() override {
    return std::make_unique<NcclCommunicator>(host().duplicate(), device());
  }
  std::unique_ptr<comm::Communicator> make_split(int color, const std::vector<int>&) override {
    return std::make_unique<NcclCommunicator>(host().split(color), device());
  }
  // The caller's stream has been synchronised; the requests complete when this stream completes.
  std::unique_ptr<comm::Request::State> start_on_device(Messages messages) override {
    link_->check_peers();
    link_->select_device();
    if (!connected_) connect();
    ncclComm_t comm = link_->comm;
    OpenGroup group(comm);
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
    link_->finish(group.end(), "ncclGroupEnd");
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
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t begun =
        ncclCommInitRankConfig(&link_->comm, world_size(), id, rank(), &config);
    if (begun != ncclInProgress) check_nccl(begun, link_->comm, "ncclCommInitRankConfig");
    try {
      await_connection();
    } catch (...) {
      link_->give_up();
      throw;
    }
    check_cuda(cudaStreamCreateWithFlags(&link_->stream, cudaStreamNonBlocking),
               "cudaStreamCreate");
    connected_ = true;
    ++made;
  }

  // NCCL chooses network interfaces on its own, and waits for ever where a firewall drops its
  // connections: that MPI connects the ranks says nothing about them.
  void await_connection() {
    const std::chrono::seconds limit = longest_connection();
    const auto started = std::chrono::steady_clock::now();
    const auto advice = [&] {
      return fmt::format(
          "NCCL has not connected {} ranks within {} s: name the network interface that all nodes "
          "share in NCCL_SOCKET_IFNAME and check the firewall between them (NCCL_DEBUG=INFO logs "
          "which interface it takes; optimizer.params.comm_backend_name \"mpi\" runs without "
          "NCCL)",
          world_size(),
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() -
                                                           started)
              .count());
    };
    bool warned = false;
    for (int64_t round = 0; link_->is_busy("ncclCommInitRankConfig"); ++round) {
      const auto waited = std::chrono::steady_clock::now() - started;
      if (waited > limit) fail("{}; {} allows more seconds", advice(), kSecondsVariable);
      if (!warned && waited > kWarnAfter) log_warning("{}; still waiting", advice());
      warned = warned || waited > kWarnAfter;
      rest(round);
    }
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

std::unique_ptr<comm::Communicator> make_nccl_communicator(std::unique_ptr<comm::Communicator> host,
                                                           Device device) {
  return std::make_unique<NcclCommunicator>(std::move(host), device);
}

}  // namespace onebit::transport
