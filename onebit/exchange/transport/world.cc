#include "onebit/exchange/transport/world.h"

#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/tcp_communicator.h"
#include "onebit/ground/base/number.h"

namespace onebit::transport {
namespace {

int environment_number(const char* name,
                       const char* fix = "start onebit under mpirun or srun, or unset it") {
  const char* text = std::getenv(name);
  const auto value = whole_number<int>(text);
  require(value && *value >= 0,
          "environment variable {}=\"{}\" is not a whole number from 0 on; {}", name, text, fix);
  return *value;
}

// Makes a node of each group of this many consecutive ranks.
constexpr const char* kRanksPerNode = "ONEBIT_RANKS_A_NODE";

void group_by_environment(comm::Communicator& communicator) {
  const bool given = std::getenv(kRanksPerNode) != nullptr;
  const int64_t own =
      given
          ? environment_number(kRanksPerNode, "set it to the number of ranks per node, or unset it")
          : 0;
  require(!given || own >= 1, "environment variable {}=0: a node has at least one rank; unset it",
          kRanksPerNode);
  // Ranks that disagree about the nodes would wait for each other in different groups.
  int64_t least = own, most = own;
  communicator.all_reduce(std::span(&least, 1), comm::Reduction::kMin);
  communicator.all_reduce(std::span(&most, 1), comm::Reduction::kMax);
  require(least == most,
          "environment variable {} is {} on some ranks and {} on others (0: not set): pass it to "
          "all ranks (mpirun -x {}; onebit launch does this), or unset it",
          kRanksPerNode, least, most, kRanksPerNode);
  if (given) {
    communicator.set_nodes(comm::Nodes::groups(communicator.world_size(), static_cast<int>(own)));
  }
}

constexpr const char* kTransport = "ONEBIT_TRANSPORT";

struct LauncherVariables {
  const char* starter;
  const char* world_size;
  const char* rank;

  bool are_set() const {
    return std::getenv(world_size) != nullptr && std::getenv(rank) != nullptr;
  }
};

}  // namespace

Launch detect_launch() {
  // srun also sets PMI variables if Slurm serves MPI through PMI, so PMI is checked first. Scripts
  // for Slurm set torchrun's variables out of its own.
  constexpr LauncherVariables kTorch = {"torchrun", "WORLD_SIZE", "RANK"};
  constexpr LauncherVariables kLaunchers[] = {
      {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
      {"mpiexec", "PMI_SIZE", "PMI_RANK"},
      kTorch,
      {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
  // mpirun and srun also start one torchrun on each machine: its ranks inherit their variables.
  const char* transport = std::getenv(kTransport);
  const bool is_torch = std::getenv("TORCHELASTIC_RUN_ID") != nullptr ||
                        (transport != nullptr && std::string_view(transport) == "tcp");
  for (const LauncherVariables& one : kLaunchers) {
    const LauncherVariables& variables = is_torch && kTorch.are_set() ? kTorch : one;
    if (!variables.are_set()) continue;
    return {.starter = variables.starter,
            .rank = environment_number(variables.rank),
            .world_size = environment_number(variables.world_size)};
  }
  return {};
}

std::string host_transport(const Launch& launch) {
  if (const char* given = std::getenv(kTransport); given != nullptr) {
    const std::string transport = given;
    require(transport == "mpi" || transport == "tcp",
            "environment variable {}=\"{}\": it is mpi or tcp; unset it to let the starter decide",
            kTransport, transport);
    return transport;
  }
  if (launch.starter == "torchrun") return "tcp";
  return launch.starter == "srun" && !mpi_is_there() && has_tcp_master() ? "tcp" : "mpi";
}

World::World(const std::function<void()>& check) {
  const Launch launch = detect_launch();
  if (launch.world_size <= 1) {
    communicator_ = comm::make_single_rank();
    return;
  }
  if (host_transport(launch) == "tcp") {
    TcpOptions options = tcp_options_from_environment(launch.rank, launch.world_size);
    options.check = check;
    communicator_ = make_tcp_world(options);
    comm::run_rank(*communicator_, [&] { group_by_environment(*communicator_); });
    return;
  }
  require(mpi_is_there(),
          "{} started {} ranks, but {}. Over TCP they also need MASTER_ADDR, the name of rank 0's "
          "machine, and MASTER_PORT, a free port there",
          launch.starter, launch.world_size, mpi_problem());
  environment_ = std::make_unique<MpiEnvironment>();
  communicator_ = environment_->world();
  // The error is announced immediately: MPI would end during unwinding before the message is seen.
  comm::run_rank(*communicator_, [&] {
    require(communicator_->world_size() == launch.world_size,
            "{} started {} ranks, but MPI reports {}: it belongs to a different MPI from the one "
            "with which onebit is built; use the mpirun of that MPI, or srun --mpi=pmix",
            launch.starter, launch.world_size, communicator_->world_size());
    group_by_environment(*communicator_);
  });
}

void World::use_device(Device device, DeviceTransport transport) {
  communicator_ = make_device_communicator(std::move(communicator_), device, transport);
}

}  // namespace onebit::transport
