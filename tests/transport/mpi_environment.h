// The MPI world of a test program. Tests that use it have Mpi in their names and are run under
// mpirun as well as alone, where they are skipped.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/transport/world.h"

namespace onebit::mpi_tests {

// Null unless this process was started by mpirun.
comm::Communicator* mpi_world();

// The same, to be owned by a test's local variable: its destructor then runs while an error
// unwinds, as in the program. Finalizing MPI while another rank aborts can hang mpirun.
std::unique_ptr<transport::World> take_mpi_world();

}  // namespace onebit::mpi_tests

#define ONEBIT_SKIP_WITHOUT_MPIRUN() \
  if (::onebit::mpi_tests::mpi_world() == nullptr) GTEST_SKIP() << "not started by mpirun"
