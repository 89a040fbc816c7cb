// Requests to end: SIGTERM and SIGUSR1 (a batch system's warnings, where mpirun forwards SIGUSR1
// and keeps running), SIGINT (Ctrl-C) and SIGHUP (a closed terminal).
#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace onebit::training {

// From now on, handlers of signals with SA_ONSTACK run on a stack of their own where they interrupt
// this thread, if it has none yet. A handler on the stack of a matrix product of oneDNN 2.6 (AVX2)
// damaged the heap in about one of 20 training runs that were interrupted.
void give_signals_a_stack();

// During its lifetime, the first of these signals is recorded instead of ending the process. A
// second one of its kind ends it, except SIGHUP: the kernel and the shell send several when a
// terminal closes. After one, this process ignores later ones to its end. SIGINT and SIGHUP keep
// being ignored if they were, as `nohup` starts a program.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Whether this process has been asked to end.
  bool asked() const;

 private:
  void record(int signal, int flags);

  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace onebit::training
