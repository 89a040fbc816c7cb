#include "onebit/exchange/transport/world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "tests/transport/mpi_environment.h"

namespace onebit::transport {
namespace {

// Sets or removes environment variables until the end of a test.
class Variables {
 public:
  Variables() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK",
          "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "RANK", "WORLD_SIZE", "MASTER_ADDR",
          "MASTER_PORT", "TORCHELASTIC_RUN_ID", "ONEBIT_TRANSPORT"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? std::nullopt : std::optional(value));
      unsetenv(name);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) {
      value.has_value() ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
  }
  void set(const char* name, const char* value) { setenv(name, value, 1); }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST(Launch, AloneIsOneRank) {
  const Variables variables;
  const Launch launch = detect_launch();
  EXPECT_EQ(launch.starter, "");
  EXPECT_EQ(launch.world_size, 1);
  World world;
  EXPECT_EQ(world.communicator().world_size(), 1);
}

TEST(Launch, KnowsTheStarters) {
  struct Case {
    const char *starter, *size, *rank;
  };
  for (const Case& expected : {Case{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                               Case{"mpiexec", "PMI_SIZE", "PMI_RANK"},
                               Case{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                               Case{"torchrun", "WORLD_SIZE", "RANK"}}) {
    Variables variables;
    variables.set(expected.size, "4");
    variables.set(expected.rank, "3");
    const Launch launch = detect_launch();
    EXPECT_EQ(launch.starter, expected.starter);
    EXPECT_EQ(launch.world_size, 4);
    EXPECT_EQ(launch.rank, 3);
  }
}

// mpirun and srun may start one torchrun on each machine; its ranks have the variables of both.
TEST(Launch, TheInnermostStarterCounts) {
  Variables variables;
  variables.set("OMPI_COMM_WORLD_SIZE", "2");
  variables.set("OMPI_COMM_WORLD_RANK", "1");
  variables.set("WORLD_SIZE", "8");
  variables.set("RANK", "5");
  EXPECT_EQ(detect_launch().starter, "mpirun");
  variables.set("TORCHELASTIC_RUN_ID", "none");
  EXPECT_EQ(detect_launch().starter, "torchrun");
  EXPECT_EQ(detect_launch().rank, 5);
}

TEST(Launch, TheStarterDecidesAboutTheTransport) {
  Variables variables;
  EXPECT_EQ(host_transport({.starter = "torchrun"}), "tcp");
  EXPECT_EQ(host_transport({.starter = "mpirun"}), "mpi");
  variables.set("ONEBIT_TRANSPORT", "tcp");
  EXPECT_EQ(host_transport({.starter = "mpirun"}), "tcp");
  variables.set("ONEBIT_TRANSPORT", "mpi");
  EXPECT_EQ(host_transport({.starter = "torchrun"}), "mpi");
  variables.set("ONEBIT_TRANSPORT", "udp");
  EXPECT_THROW(host_transport({.starter = "torchrun"}), Error);
}

TEST(Launch, RanksWithoutAPlaceToMeetAreAnError) {
  Variables variables;
  variables.set("WORLD_SIZE", "2");
  variables.set("RANK", "1");
  variables.set("MASTER_ADDR", "127.0.0.1");
  try {
    World world;
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("MASTER_PORT is not set"), std::string::npos);
  }
}

TEST(Launch, RefusesVariablesThatAreNoNumbers) {
  Variables variables;
  variables.set("PMI_SIZE", "many");
  variables.set("PMI_RANK", "0");
  EXPECT_THROW(detect_launch(), Error);
}

TEST(MpiLaunch, OpensTheWorldThatWasLaunched) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  EXPECT_EQ(detect_launch().world_size, mpi_tests::mpi_world()->world_size());
  EXPECT_EQ(detect_launch().rank, mpi_tests::mpi_world()->rank());
  EXPECT_EQ(mpi_tests::mpi_world()->local_rank(), mpi_tests::mpi_world()->rank()) << "one machine";
}

}  // namespace
}  // namespace onebit::transport
