#include "onebit/cluster/end_requests.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "onebit/base/clock.h"
#include "onebit/base/error.h"

namespace onebit::cluster {

EndRequests::EndRequests() : pipe_before_(::signal(SIGPIPE, SIG_IGN)) {
  sigemptyset(&signals_);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) sigaddset(&signals_, number);
  sigprocmask(SIG_BLOCK, &signals_, &before_);
  descriptor_ = ::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  require(descriptor_ >= 0, "cannot wait for signals: {}", std::strerror(errno));
}

EndRequests::~EndRequests() {
  ::close(descriptor_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::signal(SIGPIPE, pipe_before_);
}

int EndRequests::count() {
  signalfd_siginfo signal{};
  while (::read(descriptor_, &signal, sizeof signal) == sizeof signal) ++count_;
  return count_;
}

bool EndRequests::wait(double seconds) {
  for (const Stopwatch waited; !any() && waited.seconds() < seconds;) {
    pollfd source = {descriptor_, POLLIN, 0};
    ::poll(&source, 1, 100);
  }
  return any();
}

}  // namespace onebit::cluster
