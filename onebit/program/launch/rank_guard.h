// The guard: the parent process of one rank, on the rank's host.
#pragma once

#include <string>

#include "onebit/program/cluster/shell_command_line.h"

namespace onebit::launch {

// Environment variables of a launched rank.
inline constexpr const char* kLaunchVariable =
    "ONEBIT_LAUNCH_ID";                                      // in all processes of an attempt
inline constexpr const char* kRankVariable = "ONEBIT_RANK";  // in the rank's own process
// The slot of every rank, "0,1,0,2", if a filter selected only some of a host's slots.
inline constexpr const char* kSlotsVariable = "ONEBIT_LAUNCH_SLOTS";

// Runs `words` as rank `rank` and returns its exit status, 128 + N after signal N. The rank's lines
// go to standard error (rank_line.h), as do the lines that it writes to the descriptor given in
// `events_variable`. Signals that request an end are forwarded. The rank is killed when the guard
// is, and the guard ends both when its parent (mpirun, orted, slurmstepd) has gone: no rank
// survives its launcher. Error: the program cannot be started.
int run_guarded(const cluster::Words& words, int rank, const std::string& events_variable);

}  // namespace onebit::launch
