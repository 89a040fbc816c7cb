// Stands over the process of one rank, on the rank's host.
#pragma once

#include <string>

#include "onebit/cluster/shell_words.h"

namespace onebit::cluster {

// Names of variables that a launched rank has.
inline constexpr const char* kLaunchVariable =
    "ONEBIT_LAUNCH_ID";                                      // of all processes of an attempt
inline constexpr const char* kRankVariable = "ONEBIT_RANK";  // of the rank's own process
// Slots of every rank, "0,1,0,2", where a filter chose some of a host's.
inline constexpr const char* kSlotsVariable = "ONEBIT_LAUNCH_SLOTS";

// Runs `words` as rank `rank` and returns its exit status, 128 + N after signal N. Lines of the
// rank go to standard error (rank_line.h), as do those that it writes to the descriptor which it
// finds in `events_variable`. Signals that ask to end are passed on. The rank is killed when the
// guard is, and the guard ends both when its parent (mpirun, orted, slurmstepd) has gone: no rank
// survives its launcher. Error: the program cannot be started.
int run_guarded(const Words& words, int rank, const std::string& events_variable);

}  // namespace onebit::cluster
