// The shared object by which this process uses an MPI, loaded when it is first needed.
#pragma once

#include "onebit/exchange/comm/mpi_calls.h"

namespace onebit::comm {

// Error: mpi_problem() of mpi_communicator.h.
const MpiCalls& mpi();

// A function of the MPI itself, or null if this one does not have it.
void* find_in_mpi(const char* function);

}  // namespace onebit::comm
