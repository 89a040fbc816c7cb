#include "onebit/program/launch/end_requests.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"

namespace onebit::launch {

EndRequests::EndRequests() : pipe_before_(::signal(SIGPIPE, SIG_IGN)) {
  sigemptyset(&signals_);
  for (const int number : {SIGTERM, SIGUSR1}) sigaddset(&signals_, number);
  // A signal that is blocked arrives even if it is ignored.
  for (const int number : {SIGINT, SIGHUP}) {
    if (!is_ignored(number)) sigaddset(&signals_, number);
  }
  sigprocmask(SIG_BLOCK, &signals_, &before_);
  descriptor_ = ::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  require_call(descriptor_, "cannot wait for signals");
}

EndRequests::~EndRequests() {
  count();
  ::close(descriptor_);
  // Another hangup of the same terminal can still arrive. It must not change the status of this
  // process.
  if (hung_up_) ::signal(SIGHUP, SIG_IGN);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::signal(SIGPIPE, pipe_before_);
}

int EndRequests::count() {
  signalfd_siginfo signal{};
  while (::read(descriptor_, &signal, sizeof signal) == sizeof signal) {
    const bool is_hangup = signal.ssi_signo == SIGHUP;
    if (!is_hangup || !hung_up_) ++count_;
    hung_up_ = hung_up_ || is_hangup;
  }
  return count_;
}

bool EndRequests::wait(double seconds) {
  for (const Stopwatch waited; !any() && waited.seconds() < seconds;) {
    pollfd source = {descriptor_, POLLIN, 0};
    ::poll(&source, 1, 100);
  }
  return any();
}

}  // namespace onebit::launch
