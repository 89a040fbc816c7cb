#include "onebit/training/training/interruption.h"

#include <unistd.h>

#include <algorithm>

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

// Of a thread, until it ends.
class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    // Frames with AVX-512's registers need more than the least.
    const auto size = std::max(size_t{64} << 10, static_cast<size_t>(sysconf(_SC_SIGSTKSZ)));
    memory_.resize(size);
    set({.ss_sp = memory_.data(), .ss_flags = 0, .ss_size = size});
  }
  ~SignalStack() {
    if (!memory_.empty()) set({.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0});
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static void set(const stack_t& stack) { sigaltstack(&stack, nullptr); }

  std::vector<char> memory_;
};

}  // namespace

void give_signals_a_stack() {
  thread_local const SignalStack stack;
  static_cast<void>(stack);  // made when the thread first comes here
}

Interruption::Interruption() {
  give_signals_a_stack();
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
  action.sa_flags = flags | SA_RESTART | SA_ONSTACK;
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
