#include "onebit/comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "onebit/comm/thread_communicator.h"

namespace onebit::comm {
namespace {

int environment_number(const char* name) {
  const char* text = std::getenv(name);
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  require(error == std::errc() && stop == end && value >= 0,
          "environment variable {}=\"{}\" is not a number; start onebit under mpirun or srun, or "
          "unset it",
          name, text);
  return value;
}

// Takes this many ranks, one after the other, for those of one node each.
constexpr const char* kRanksANode = "ONEBIT_RANKS_A_NODE";

struct LauncherVariables {
  const char* launcher;
  const char* world_size;
  const char* rank;
};

}  // namespace

Launch detect_launch() {
  // srun also sets PMI variables if Slurm serves MPI through PMI, so PMI is checked first.
  constexpr LauncherVariables kLaunchers[] = {
      {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
      {"mpiexec", "PMI_SIZE", "PMI_RANK"},
      {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
  for (const LauncherVariables& variables : kLaunchers) {
    if (std::getenv(variables.world_size) == nullptr || std::getenv(variables.rank) == nullptr) {
      continue;
    }
    return {.launcher = variables.launcher,
            .rank = environment_number(variables.rank),
            .world_size = environment_number(variables.world_size)};
  }
  return {};
}

World::World() {
  const Launch launch = detect_launch();
  if (launch.world_size <= 1) {
    communicator_ = make_single_rank();
    return;
  }
  require(mpi_is_built(),
          "{} started {} ranks, but this onebit is built without MPI: install libopenmpi-dev and "
          "openmpi-bin and build again with -DONEBIT_MPI=ON",
          launch.launcher, launch.world_size);
  environment_ = std::make_unique<MpiEnvironment>();
  communicator_ = environment_->world();
  // The error is announced at once: while unwinding, MPI would end before the message is seen.
  run_rank(*communicator_, [&] {
    require(communicator_->world_size() == launch.world_size,
            "{} started {} ranks, but MPI sees {}: the launcher belongs to another MPI than the "
            "one onebit is built with; use its mpirun, or srun --mpi=pmix",
            launch.launcher, launch.world_size, communicator_->world_size());
    if (std::getenv(kRanksANode) == nullptr) return;
    const int ranks_a_node = environment_number(kRanksANode);
    require(ranks_a_node >= 1, "environment variable {}=0: a node has at least one rank; unset it",
            kRanksANode);
    communicator_->set_nodes(Nodes::groups(launch.world_size, ranks_a_node));
  });
}

void World::use_device(Device device, DeviceTransport transport) {
  communicator_ = make_device_communicator(std::move(communicator_), device, transport);
}

}  // namespace onebit::comm
