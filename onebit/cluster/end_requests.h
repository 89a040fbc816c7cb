// Signals that ask the launcher to end: SIGTERM, SIGINT (Ctrl-C), SIGUSR1 (a batch system's
// warning) and SIGHUP.
#pragma once

#include <signal.h>

namespace onebit::cluster {

// While it lives, these signals are counted instead of ending the process, and writing to a closed
// pipe is no signal.
class EndRequests {
 public:
  EndRequests();
  ~EndRequests();
  EndRequests(const EndRequests&) = delete;
  EndRequests& operator=(const EndRequests&) = delete;

  // To poll.
  int descriptor() const { return descriptor_; }
  // How many have come.
  int count();
  bool any() { return count() > 0; }
  // Waits so long, or until the first; returns any().
  bool wait(double seconds);

 private:
  sigset_t signals_{}, before_{};
  int descriptor_ = -1;
  int count_ = 0;
  void (*pipe_before_)(int) = nullptr;
};

}  // namespace onebit::cluster
