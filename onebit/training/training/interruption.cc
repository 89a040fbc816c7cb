#include "onebit/training/training/interruption.h"

#include <span>

#include "onebit/ground/base/machine.h"

namespace onebit::training {
namespace {

// A signal handler can access only globals.
volatile std::sig_atomic_t asked_to_end = 0;
volatile std::sig_atomic_t hung_up = 0;

void note_signal(int signal) {
  asked_to_end = 1;
  if (signal == SIGHUP) hung_up = 1;
}

}  // namespace

Interruption::Interruption() {
  asked_to_end = 0;  // an earlier run of this process may have been asked
  hung_up = 0;
  for (const int signal : {SIGTERM, SIGUSR1}) record(signal, static_cast<int>(SA_RESETHAND));
  if (!is_ignored(SIGINT)) record(SIGINT, static_cast<int>(SA_RESETHAND));
  if (!is_ignored(SIGHUP)) record(SIGHUP, 0);
}

void Interruption::record(int signal, int flags) {
  struct sigaction action {
  }, before{};
  action.sa_handler = note_signal;
  action.sa_flags = flags | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &before);
  before_.emplace_back(signal, before);
}

Interruption::~Interruption() {
  for (const auto& [signal, before] : before_) {
    // Another one of the same terminal can still arrive. It must not change the status of this
    // process.
    if (signal == SIGHUP && hung_up != 0) {
      std::signal(SIGHUP, SIG_IGN);
    } else {
      sigaction(signal, &before, nullptr);
    }
  }
}

bool Interruption::asked() const {
  return asked_to_end != 0;
}

}  // namespace onebit::training
