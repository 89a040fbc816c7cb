#include "onebit/program/cluster/starter_choice.h"

#include <gtest/gtest.h>

namespace onebit::cluster {
namespace {

using Kind = MpiVersion::Kind;

// What the libraries and programs printed.
TEST(MpiVersion, OfLibraries) {
  EXPECT_EQ(version_of_library("Open MPI v4.1.4"),
            (MpiVersion{.kind = Kind::kOpenMpi, .major = 4, .number = "4.1.4"}));
  EXPECT_EQ(version_of_library("Open MPI v5.0.11").major, 5);
  EXPECT_EQ(version_of_library("Open MPI v10.0.0rc1").major, 10);
  EXPECT_EQ(version_of_library("MPICH Version:      4.0.2"),
            (MpiVersion{.kind = Kind::kMpich, .major = 0, .number = "4.0.2"}));
  EXPECT_EQ(version_of_library("Intel(R) MPI Library 2021.9 for Linux* OS").kind, Kind::kMpich);
  EXPECT_EQ(version_of_library("MVAPICH2 Version      :2.3.7").kind, Kind::kMpich);
}

TEST(MpiVersion, OfStarters) {
  EXPECT_EQ(version_of_starter("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n"),
            (MpiVersion{.kind = Kind::kOpenMpi, .major = 4, .number = "4.1.4"}));
  EXPECT_EQ(version_of_starter("mpirun (Open MPI) 5.0.11\n").text(), "Open MPI 5.0.11");
  EXPECT_EQ(version_of_starter("mpiexec (OpenRTE) 4.1.4\n").major, 4);
  EXPECT_EQ(version_of_starter("HYDRA build details:\n    Version:          4.0.2\n    Release"),
            (MpiVersion{.kind = Kind::kMpich, .major = 0, .number = "4.0.2"}));
  EXPECT_EQ(version_of_starter("Intel(R) MPI Library for Linux* OS, Version 2021.9").text(),
            "MPICH 2021.9");
}

TEST(MpiVersion, OfAnotherProgramIsUnknown) {
  for (const char* text : {"", "usage: mpirun FILE", "prterun (PRRTE) 3.0.11", "Version: 4.1.4"}) {
    EXPECT_EQ(version_of_starter(text), MpiVersion{}) << text;
    EXPECT_EQ(version_of_starter(text).text(), "another MPI");
  }
  EXPECT_EQ(version_of_starter("mpirun (Open MPI) ?").text(), "Open MPI");
  EXPECT_EQ(version_of_starter("HYDRA build details:").text(), "MPICH");
}

TEST(MpiVersion, PartsOfOneSeriesFitTogether) {
  const MpiVersion four = version_of_library("Open MPI v4.1.4");
  EXPECT_TRUE(fit_together(version_of_starter("mpirun (Open MPI) 4.1.6"), four));
  EXPECT_FALSE(fit_together(version_of_starter("mpirun (Open MPI) 5.0.7"), four));
  const MpiVersion mpich = version_of_library("MPICH Version: 4.0.2"),
                   hydra = version_of_starter("HYDRA build details:\n Version: 3.4");
  EXPECT_TRUE(fit_together(hydra, mpich));
  EXPECT_FALSE(fit_together(hydra, four));
  EXPECT_FALSE(fit_together(version_of_starter("mpirun (Open MPI) 4.1.4"), mpich));
  EXPECT_FALSE(fit_together(MpiVersion{}, four));
}

}  // namespace
}  // namespace onebit::cluster
