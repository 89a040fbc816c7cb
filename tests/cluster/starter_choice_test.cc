#include "onebit/cluster/starter_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/base/message_of.h"

namespace onebit::cluster {
namespace {

using testing::HasSubstr;

constexpr const char *kOpenMpi = "Open MPI v4.1.4", *kMpich = "MPICH Version: 4.0.2";

StarterNeeds needs(const char* asked, const char* mpi, const std::set<std::string>& programs,
                   bool in_slurm = false) {
  return {.asked = asked,
          .mpi = mpi,
          .in_slurm = in_slurm,
          .is_there = [programs](const std::string& name) { return programs.contains(name); }};
}

TEST(StarterChoice, FollowsTheMpiOfTheBuild) {
  EXPECT_EQ(choose_starter(needs("auto", kOpenMpi, {"mpirun", "mpiexec"})), Starter::kOpenMpi);
  EXPECT_EQ(choose_starter(needs("auto", kMpich, {"mpirun", "mpiexec"})), Starter::kMpich);
  EXPECT_EQ(choose_starter(needs("auto", kOpenMpi, {"srun"}, true)), Starter::kSrun);
}

TEST(StarterChoice, IsTheRequestedOne) {
  EXPECT_EQ(choose_starter(needs("openmpi", kOpenMpi, {"mpirun"})), Starter::kOpenMpi);
  EXPECT_EQ(choose_starter(needs("mpich", kMpich, {"mpiexec"})), Starter::kMpich);
  EXPECT_EQ(choose_starter(needs("srun", kMpich, {"mpiexec", "srun"})), Starter::kSrun);
}

struct Refusal {
  StarterNeeds needs;
  const char* message;
};

TEST(StarterChoice, RefusesWhatCannotStartTheRanks) {
  const Refusal refusals[] = {
      {needs("mpich", kOpenMpi, {"mpirun", "mpiexec"}),
       "--with mpich: this onebit is built with Open MPI v4.1.4, whose ranks cannot be connected "
       "by the mpiexec of another MPI: leave --with out, or give --with openmpi, whose mpirun is "
       "installed"},
      {needs("openmpi", kMpich, {"mpirun", "mpiexec"}), "or give --with mpich, whose mpiexec is"},
      {needs("srun", kOpenMpi, {"mpirun"}),
       "--with srun: srun is not in PATH: leave --with out, or give --with openmpi"},
      {needs("srun", kOpenMpi, {}), "install mpirun (Debian: openmpi-bin)"},
      {needs("openmpi", kOpenMpi, {"srun"}, true),
       "not in PATH: give --with srun, which is installed"},
      {needs("openmpi", kOpenMpi, {"srun"}), "not in PATH: install mpirun (Debian: openmpi-bin)"},
      {needs("auto", kMpich, {"mpirun"}),
       "mpiexec is not in PATH, and this onebit is built with MPICH Version: 4.0.2: install "
       "mpiexec "
       "(Debian: mpich)"},
  };
  for (const Refusal& one : refusals) {
    EXPECT_THAT(message_of([&] { choose_starter(one.needs); }), HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace onebit::cluster
