// The processes of a launch on this machine: those with its id in their environment. They are found
// and ended by process id, never by a name or pattern.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace onebit::cluster {

struct LaunchedProcess {
  pid_t pid = 0;
  int rank = -1;   // -1: not a rank itself (a guard, a daemon of the starter)
  char state = 0;  // as in /proc/PID/stat: R, S, D, T (stopped), Z
};

// The processes that this user may see, without this process. Calls `progress` for every process of
// the machine: a busy one with many takes seconds.
std::vector<LaunchedProcess> find_launched(
    const std::string& launch_id, const std::function<void()>& progress = [] {});

// Kills all processes of the launch, including those started meanwhile, and waits until they are
// gone, at most `timeout_seconds` (a process inside a driver can take longer). Returns the ranks
// among them.
std::set<int> end_launched(
    const std::string& launch_id, double timeout_seconds,
    const std::function<void()>& progress = [] {});

}  // namespace onebit::cluster
