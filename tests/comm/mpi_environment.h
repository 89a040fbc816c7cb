// The MPI world of a test program. Tests that use it have Mpi in their names and are run under
// mpirun as well as alone; alone they are skipped.
#pragma once

#include <gtest/gtest.h>

#include "onebit/comm/communicator.h"

namespace onebit::testing {

// Null unless this process was started by mpirun.
comm::Communicator* mpi_world();

}  // namespace onebit::testing

#define ONEBIT_SKIP_WITHOUT_MPIRUN() \
  if (::onebit::testing::mpi_world() == nullptr) GTEST_SKIP() << "not started by mpirun"
