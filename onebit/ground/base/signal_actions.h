// What this process does on a signal.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

namespace onebit {

// The signals by which users, shells and batch systems ask a program to end.
constexpr std::array kEndingSignals = {SIGHUP, SIGINT, SIGTERM, SIGUSR1};

// Undoes at its end what was changed about these signals during its lifetime. Libraries change it
// when they are loaded or started: Open MPI 5 loads UCX, which handles SIGHUP (it then logs more)
// even where it is ignored. A closed terminal would not end `onebit prepare`, and would end a run
// under `nohup`.
class KeptSignalActions {
 public:
  KeptSignalActions() {
    for (size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], nullptr, &actions_[i]);
    }
  }
  ~KeptSignalActions() {
    for (size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], &actions_[i], nullptr);
    }
  }
  KeptSignalActions(const KeptSignalActions&) = delete;
  KeptSignalActions& operator=(const KeptSignalActions&) = delete;

 private:
  std::array<struct sigaction, kEndingSignals.size()> actions_{};
};

}  // namespace onebit
