// Requests to end: SIGTERM and SIGUSR1 (a batch system's warnings; mpirun forwards SIGUSR1 and
// keeps running) and SIGINT (Ctrl-C).
#pragma once

#include <csignal>

#include "onebit/comm/communicator.h"

namespace onebit::training {

// During its lifetime, the first of these signals is recorded instead of ending the process; a
// second one ends it.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Whether this process has been asked to end.
  bool asked() const;
  // Whether any rank has been asked to end. Collective.
  bool agreed(comm::Communicator& communicator) const;

 private:
  struct sigaction before_terminate_ {};
  struct sigaction before_interrupt_ {};
  struct sigaction before_user_ {};
};

}  // namespace onebit::training
