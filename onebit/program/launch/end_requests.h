// Signals that ask the launcher to end: SIGTERM, SIGINT (Ctrl-C), SIGUSR1 (a batch system's
// warning) and SIGHUP (a closed terminal). SIGINT and SIGHUP keep being ignored if the launcher was
// started so, as `nohup` does.
#pragma once

#include <signal.h>

namespace onebit::launch {

// While an object exists, these signals are counted instead of ending the process, and SIGPIPE is
// ignored. After a SIGHUP this process ignores later ones to its end.
class EndRequests {
 public:
  EndRequests();
  ~EndRequests();
  EndRequests(const EndRequests&) = delete;
  EndRequests& operator=(const EndRequests&) = delete;

  // A descriptor for poll(), readable when a signal has arrived.
  int descriptor() const { return descriptor_; }
  // The number of signals so far. SIGHUP counts once: the kernel and the shell send several when a
  // terminal closes, while other signals are repeated only by somebody who insists.
  int count();
  bool any() { return count() > 0; }
  // Waits until the first signal, at most `seconds`. Returns any().
  bool wait(double seconds);

 private:
  sigset_t signals_{}, before_{};
  int descriptor_ = -1;
  int count_ = 0;
  bool hung_up_ = false;
  void (*pipe_before_)(int) = nullptr;
};

}  // namespace onebit::launch
