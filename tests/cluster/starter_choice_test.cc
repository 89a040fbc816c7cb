#include "onebit/program/cluster/starter_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/base/message_of.h"

namespace onebit::cluster {
namespace {

using testing::HasSubstr;

constexpr const char *kOpenMpi = "Open MPI v4.1.4", *kMpich = "MPICH Version: 4.0.2";

constexpr const char *kMpirun4 = "mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n",
                     *kMpirun5 = "mpirun (Open MPI) 5.0.7\n",
                     *kHydra = "HYDRA build details:\n    Version:                4.0.2\n";

using Programs = std::map<std::string, std::string>;  // and what they print of their version

StarterNeeds needs(const char* asked, const char* mpi, const Programs& programs,
                   bool in_slurm = false) {
  return {.asked = asked,
          .mpi = mpi,
          .in_slurm = in_slurm,
          .is_there = [programs](const std::string& name) { return programs.contains(name); },
          .says = [programs](const std::string& name) { return programs.at(name); }};
}

Starter chosen(const StarterNeeds& needs) {
  return choose_starter(needs).starter;
}

const Programs kMpirun = {{"mpirun", kMpirun4}}, kMpiexec = {{"mpiexec", kHydra}},
               kSrun = {{"srun", "slurm 22.05.8"}}, kNone = {},
               kBoth = {{"mpirun", kMpirun4}, {"mpiexec", kHydra}},
               kMpiexecAndSrun = {{"mpiexec", kHydra}, {"srun", "slurm 22.05.8"}};

TEST(StarterChoice, FollowsTheMpiOfTheBuild) {
  EXPECT_EQ(chosen(needs("auto", kOpenMpi, kBoth)), Starter::kOpenMpi);
  EXPECT_EQ(chosen(needs("auto", kMpich, kBoth)), Starter::kMpich);
  EXPECT_EQ(chosen(needs("auto", kOpenMpi, kSrun, true)), Starter::kSrun);
}

TEST(StarterChoice, IsTheRequestedOne) {
  EXPECT_EQ(chosen(needs("openmpi", kOpenMpi, kMpirun)), Starter::kOpenMpi);
  EXPECT_EQ(chosen(needs("mpich", kMpich, kMpiexec)), Starter::kMpich);
  EXPECT_EQ(chosen(needs("srun", kMpich, kMpiexecAndSrun)), Starter::kSrun);
}

TEST(StarterChoice, KnowsTheSeriesOfOpenMpi) {
  const ChosenStarter four = choose_starter(needs("auto", kOpenMpi, kMpirun));
  EXPECT_EQ(four.program, "mpirun");
  EXPECT_EQ(four.version.major, 4);
  const Programs there = {{"mpirun", kMpirun5}};
  EXPECT_EQ(choose_starter(needs("auto", "Open MPI v5.0.10", there)).version.major, 5);
}

// Two MPIs are installed, and the usual name belongs to the other one.
TEST(StarterChoice, FindsTheProgramThatFitsByItsOtherName) {
  const Programs there = {{"mpirun", kHydra}, {"mpirun.openmpi", kMpirun4}};
  EXPECT_EQ(choose_starter(needs("auto", kOpenMpi, there)).program, "mpirun.openmpi");
  EXPECT_EQ(choose_starter(needs("openmpi", kOpenMpi, there)).program, "mpirun.openmpi");
  const Programs others = {{"mpiexec", kMpirun4}, {"mpiexec.hydra", kHydra}};
  EXPECT_EQ(choose_starter(needs("auto", kMpich, others)).program, "mpiexec.hydra");
}

TEST(StarterChoice, RefusesAProgramOfAnotherMpi) {
  struct Case {
    const char *mpi, *program, *says, *belongs_to;
  };
  for (const Case& one : {Case{kOpenMpi, "mpirun", kMpirun5, "Open MPI 5.0.7"},
                          Case{"Open MPI v5.0.7", "mpirun", kMpirun4, "Open MPI 4.1.4"},
                          Case{kOpenMpi, "mpirun", kHydra, "MPICH 4.0.2"},
                          Case{kMpich, "mpiexec", kMpirun4, "Open MPI 4.1.4"},
                          Case{kOpenMpi, "mpirun", "", "another MPI"},
                          Case{kOpenMpi, "mpirun", "usage: mpirun FILE", "another MPI"}}) {
    Programs there = {{one.program, one.says}};
    for (const char* name : {"mpirun.openmpi", "mpiexec.mpich"}) there[name] = one.says;
    const std::string said = message_of([&] { choose_starter(needs("auto", one.mpi, there)); });
    EXPECT_THAT(said, HasSubstr(std::string("the ") + one.program + " in PATH belongs to " +
                                one.belongs_to + ", but this onebit runs with "));
    EXPECT_THAT(said, HasSubstr("first in PATH"));
  }
}

struct Refusal {
  StarterNeeds needs;
  const char* message;
};

TEST(StarterChoice, RefusesWhatCannotStartTheRanks) {
  const Refusal refusals[] = {
      {needs("mpich", kOpenMpi, kBoth),
       "--with mpich: this onebit is built with Open MPI v4.1.4, whose ranks cannot be connected "
       "by the mpiexec of another MPI: leave --with out, or give --with openmpi, whose mpirun is "
       "installed"},
      {needs("openmpi", kMpich, kBoth), "or give --with mpich, whose mpiexec is"},
      {needs("srun", kOpenMpi, kMpirun),
       "--with srun: srun is not in PATH: leave --with out, or give --with openmpi"},
      {needs("srun", kOpenMpi, kNone), "install mpirun (Debian: openmpi-bin)"},
      {needs("openmpi", kOpenMpi, kSrun, true),
       "not in PATH: give --with srun, which is installed"},
      {needs("openmpi", kOpenMpi, kSrun), "not in PATH: install mpirun (Debian: openmpi-bin)"},
      {needs("auto", kMpich, kMpirun),
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
