#include "onebit/training/interruption.h"

#include <span>

namespace onebit::training {
namespace {

// A signal handler can access only globals.
volatile std::sig_atomic_t asked_to_end = 0;

void note_signal(int) {
  asked_to_end = 1;
}

}  // namespace

Interruption::Interruption() {
  asked_to_end = 0;  // an earlier run of this process may have been asked
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &before_terminate_);
  sigaction(SIGINT, &action, &before_interrupt_);
  sigaction(SIGUSR1, &action, &before_user_);
}

Interruption::~Interruption() {
  sigaction(SIGTERM, &before_terminate_, nullptr);
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGUSR1, &before_user_, nullptr);
}

bool Interruption::asked() const {
  return asked_to_end != 0;
}

bool Interruption::agreed(comm::Communicator& communicator) const {
  int64_t any = asked() ? 1 : 0;
  communicator.all_reduce(std::span(&any, 1), comm::Reduction::kMax);
  return any != 0;
}

}  // namespace onebit::training
