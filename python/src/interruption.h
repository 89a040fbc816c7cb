// Ctrl-C while a call waits for other ranks, for which the interpreter would wait, too.
#pragma once

#include <memory>

#include "python/src/module.h"

namespace onebit::python {

// Throws the exception of a signal's handler. Called without the interpreter's lock.
void check_signals();

// While it lives, and only in the interpreter's main thread with its own handler of SIGINT, Ctrl-C
// ends the waiting: a call that has not ended within a second fails on all ranks.
class InterruptionWatch {
 public:
  explicit InterruptionWatch(std::shared_ptr<comm::Communicator> communicator);
  ~InterruptionWatch();
  InterruptionWatch(const InterruptionWatch&) = delete;
  InterruptionWatch& operator=(const InterruptionWatch&) = delete;

 private:
  bool watches_ = false;
};

// Runs `work`, which waits for other ranks, without the interpreter's lock. A KeyboardInterrupt
// replaces the error to which it leads.
template <typename Work>
void wait_for_ranks(const std::shared_ptr<comm::Communicator>& communicator, const Work& work) {
  try {
    const InterruptionWatch watch(communicator);
    const nb::gil_scoped_release release;
    work();
  } catch (...) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    throw;
  }
}

}  // namespace onebit::python
