// A collective is a set of non-blocking point-to-point messages: the bytes counted are the bytes
// sent, and a wait can check for failed ranks while it polls.
#include "onebit/exchange/transport/mpi_communicator.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <thread>
#include <utility>

#include "onebit/exchange/transport/mpi_job.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/signal_actions.h"

namespace onebit::transport {

namespace {

constexpr int kDataTag = 1;

// Polls instead of blocking in MPI, which would spin on a core that computes and could not notice a
// failed rank: first without pauses, then with short ones, since ranks on one machine wait about a
// millisecond for each other. In a longer wait they are long: if the rank has a single core, every
// poll interrupts its computation.
class Backoff {
 public:
  // Returns true when it is time to check for failures.
  bool pause() {
    ++rounds_;
    if (rounds_ < 200) {
      sched_yield();
      return false;
    }
    const bool is_long = waited_.seconds() > kShortWaitSeconds;
    std::this_thread::sleep_for(
        std::chrono::duration<double>(is_long ? kLongPauseSeconds : kShortPauseSeconds));
    if (waited_.seconds() < next_check_seconds_) return false;
    next_check_seconds_ = waited_.seconds() + kCheckSeconds;
    return true;
  }

 private:
  static constexpr double kShortWaitSeconds = 4e-3;
  static constexpr double kShortPauseSeconds = 20e-6, kLongPauseSeconds = 500e-6;
  static constexpr double kCheckSeconds = 5e-3;

  Stopwatch waited_;
  double next_check_seconds_ = kCheckSeconds;
  int64_t rounds_ = 0;
};

class MpiState : public comm::Request::State {
 public:
  MpiState(std::shared_ptr<MpiJob> job, std::shared_ptr<std::atomic<bool>> interrupted,
           const MpiComm* comm, std::string_view operation,
           std::span<const std::span<const std::byte>> send,
           std::span<const std::span<std::byte>> receive)
      : job_(std::move(job)),
        interrupted_(std::move(interrupted)),
        operation_(operation),
        batch_(mpi().new_batch()) {
    for (size_t peer = 0; peer < receive.size(); ++peer) {
      pieces(receive[peer], [&](std::span<std::byte> piece) {
        check_mpi(mpi().add_receive(batch_, comm, piece.data(), static_cast<int>(piece.size()),
                                    static_cast<int>(peer), kDataTag),
                  "MPI_Irecv");
        expected_.push_back({static_cast<int>(peer), static_cast<int>(piece.size())});
      });
    }
    for (size_t peer = 0; peer < send.size(); ++peer) {
      pieces(send[peer], [&](std::span<const std::byte> piece) {
        check_mpi(mpi().add_send(batch_, comm, piece.data(), static_cast<int>(piece.size()),
                                 static_cast<int>(peer), kDataTag),
                  "MPI_Isend");
      });
    }
  }

  // After an error, cancels messages that were not matched.
  ~MpiState() override {
    if (!complete_) mpi().abandon(batch_);
    mpi().delete_batch(batch_);
  }

  bool test() override {
    if (complete_) return true;
    if (*interrupted_) fail("rank {}: interrupted in {}", job_->rank(), operation_);
    int done = 0;
    const int code = mpi().test(batch_, &done);
    if (code == kMpiErrorInBatch) fail_with_status();
    check_mpi(code, "MPI_Testall");
    if (done == 0) return false;
    complete_ = true;
    check_sizes();
    return true;
  }

  void wait() override {
    Backoff backoff;
    while (!test()) {
      if (backoff.pause()) job_->check_peers();
    }
  }

 private:
  struct Expected {
    int peer, size_bytes;
  };

  template <typename Byte, typename Body>
  static void pieces(std::span<Byte> message, const Body& body) {
    const size_t most_bytes = piece_bytes(message.size());
    while (!message.empty()) {
      const size_t size_bytes = std::min(message.size(), most_bytes);
      body(message.first(size_bytes));
      message = message.subspan(size_bytes);
    }
  }

  [[noreturn]] void fail_with_status() const {
    for (size_t i = 0; i < expected_.size(); ++i) {
      if (mpi().is_too_long(batch_, static_cast<int>(i)) != 0) {
        fail("{}: rank {} sends more than the {} bytes that rank {} expects", operation_,
             expected_[i].peer, expected_[i].size_bytes, job_->rank());
      }
    }
    throw comm::NetworkError(fmt::format("{}: a message was lost", operation_));
  }

  void check_sizes() const {
    for (size_t i = 0; i < expected_.size(); ++i) {
      const int received = mpi().received_bytes(batch_, static_cast<int>(i));
      require(received == expected_[i].size_bytes,
              "{}: rank {} sends {} bytes to rank {}, which expects {}", operation_,
              expected_[i].peer, received, job_->rank(), expected_[i].size_bytes);
    }
  }

  std::shared_ptr<MpiJob> job_;
  std::shared_ptr<std::atomic<bool>> interrupted_;
  std::string_view operation_;
  MpiBatch* batch_;                 // receives, then sends
  std::vector<Expected> expected_;  // of the receives
  bool complete_ = false;
};

class MpiCommunicator : public comm::Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiJob> job, MpiComm* comm, int local_rank)
      : comm::Communicator(rank_in(comm), size_of(comm), local_rank),
        job_(std::move(job)),
        comm_(comm) {}
  ~MpiCommunicator() override {
    if (!job_->failed() && std::uncaught_exceptions() == 0) mpi().free_comm(comm_);
  }

  std::string_view transport() const override { return "mpi"; }

  [[noreturn]] void abort(const std::string& message) override { job_->end(message); }

  void interrupt() override { *interrupted_ = true; }

 protected:
  std::unique_ptr<comm::Communicator> make_duplicate() override {
    return std::make_unique<MpiCommunicator>(job_, duplicate_of(comm_), local_rank());
  }
  std::unique_ptr<comm::Communicator> make_split(int color, const std::vector<int>&) override {
    MpiComm* part = nullptr;
    check_mpi(mpi().split(comm_, color, rank(), &part), "MPI_Comm_split");
    return std::make_unique<MpiCommunicator>(job_, part, local_rank());
  }
  std::unique_ptr<comm::Request::State> start(Messages messages) override {
    return std::make_unique<MpiState>(job_, interrupted_, comm_, messages.operation, messages.send,
                                      messages.receive);
  }

 private:
  std::shared_ptr<MpiJob> job_;
  MpiComm* comm_;
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
};

// This rank's number among the ranks that share its memory, and the world rank of their first.
struct Place {
  int local_rank = 0, first_rank = 0;
};

Place place_on_machine(const MpiComm* world) {
  MpiComm* machine = nullptr;
  check_mpi(mpi().split_by_machine(&machine), "MPI_Comm_split_type");
  Place place{.local_rank = rank_in(machine), .first_rank = rank_in(world)};
  check_mpi(mpi().broadcast(machine, &place.first_rank), "MPI_Bcast");
  mpi().free_comm(machine);
  return place;
}

}  // namespace

std::string mpi_version() {
  if (!mpi_problem().empty()) return "";
  std::array<char, 8192> text{};
  check_mpi(mpi().library_version(text.data(), static_cast<int>(text.size())),
            "MPI_Get_library_version");
  const std::string words = text.data();
  return words.substr(0, words.find_first_of("\n,"));
}

bool mpi_takes_device_memory() {
  // Open MPI, MPICH and MVAPICH have an extension of this name, each in another header.
  using Query = int (*)();
  const auto query = reinterpret_cast<Query>(find_in_mpi("MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

MpiEnvironment::MpiEnvironment() : exceptions_at_start_(std::uncaught_exceptions()) {
  // A write to a rank that has died is an error of this rank and must not end it by a signal: the
  // launcher would report this rank as the one that died first.
  ::signal(SIGPIPE, SIG_IGN);
  int takes_threads = 0;
  {
    const KeptSignalActions kept;
    check_mpi(mpi().initialize(&takes_threads), "MPI_Init_thread");
  }
  if (takes_threads == 0) {
    mpi().finalize();
    fail(
        "this MPI does not support calls from several threads (MPI_THREAD_MULTIPLE), which the "
        "exchange of gradients during the backward pass requires: use an Open MPI built with "
        "thread support, such as Debian's");
  }
}

MpiEnvironment::~MpiEnvironment() {
  if (std::uncaught_exceptions() <= exceptions_at_start_) {
    mpi().finalize();
    return;
  }
  // The rank that failed first ends the job. This one does so only if that does not happen.
  std::this_thread::sleep_for(std::chrono::duration<double>(MpiJob::kYieldSeconds));
  mpi().abort();
}

std::unique_ptr<comm::Communicator> MpiEnvironment::world() {
  auto job = std::make_shared<MpiJob>();
  MpiComm* const all = duplicate_of(nullptr);
  const Place place = place_on_machine(all);
  std::vector<int> node_of_rank(static_cast<size_t>(size_of(all)));
  check_mpi(mpi().all_gather(all, place.first_rank, node_of_rank.data()), "MPI_Allgather");
  auto world = std::make_unique<MpiCommunicator>(job, all, place.local_rank);
  world->set_nodes(comm::Nodes(node_of_rank));
  return world;
}

}  // namespace onebit::transport
