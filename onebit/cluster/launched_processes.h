// The processes of a launch on this machine: those that have its id in their environment. They are
// found and ended by number, never by a name or pattern.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace onebit::cluster {

struct LaunchedProcess {
  pid_t pid = 0;
  int rank = -1;   // -1: no rank's own process (a guard, a daemon of the launcher)
  char state = 0;  // as in /proc/PID/stat: R, S, D, T (stopped), Z
};

// Those that this user may see, without this process.
std::vector<LaunchedProcess> find_launched(const std::string& launch_id);

// Kills all of them, and what they start meanwhile; returns how many ranks were among them. Waits
// until they are gone, at most `patience_seconds` (a process inside a driver can take longer).
int end_launched(const std::string& launch_id, double patience_seconds);

}  // namespace onebit::cluster
